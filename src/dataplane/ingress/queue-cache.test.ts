import { expect, test } from 'vitest';
import { INGRESS_LIMITS } from './limits.ts';
import { createQueueCache } from './queue-cache.ts';
import type { QueueConfig } from './store.ts';
import { QUEUE } from './testing/memory-store.ts';

async function start(config: Partial<QueueConfig> = {}) {
  const clock = { ms: 0 };
  const memory = { isPressed: false };
  const store: { queue: QueueConfig | null | 'unavailable' } = { queue: { ...QUEUE, ...config } };
  const cache = createQueueCache({
    readQueue: async () => store.queue,
    limits: INGRESS_LIMITS,
    isPressed: () => memory.isPressed,
    monotonicMs: () => clock.ms,
    onFailure: () => {},
  });
  await cache.read('t', 'q');
  const peek = () => cache.peek('t', 'q')?.config;
  return { clock, memory, store, cache, peek };
}

test('a configuration is used until a minute after it was read or confirmed', async () => {
  const { clock, cache, peek } = await start();
  clock.ms = 59_999;
  expect(peek()).toMatchObject({ bytes: 0 });
  cache.confirm('t', 'q', QUEUE, { payer: 'acc_a', eventsPerSecond: undefined, bytes: 7 });
  clock.ms += 59_999;
  expect(peek()).toMatchObject({ cfgv: QUEUE.cfgv, payer: 'acc_a', bytes: 7 });
  clock.ms += 1;
  expect(peek()).toBeUndefined();
});

test('the limit of an account is read again after a second', async () => {
  const { clock, cache, peek } = await start({ eventsPerSecond: 5 });
  clock.ms = 999;
  expect(peek()).toMatchObject({ eventsPerSecond: 5 });
  clock.ms = 1_000;
  expect(peek()).toBeUndefined();
  cache.confirm('t', 'q', QUEUE, { payer: '', eventsPerSecond: 6, bytes: 0 });
  expect(peek()).toMatchObject({ eventsPerSecond: 6 });
  clock.ms = 2_000;
  expect(peek()).toBeUndefined();
});

test('while memory is short, the stored bytes are read again after a second', async () => {
  const { clock, memory, peek } = await start();
  memory.isPressed = true;
  clock.ms = 999;
  expect(peek()).toBeDefined();
  clock.ms = 1_000;
  expect(peek()).toBeUndefined();
  memory.isPressed = false;
  expect(peek()).toBeDefined();
});

test('what was returned for another version or generation is not used', async () => {
  const { cache, peek } = await start();
  const now = { payer: 'acc_other', eventsPerSecond: 1, bytes: 7 };
  cache.confirm('t', 'q', { ...QUEUE, cfgv: 'other' }, now);
  cache.confirm('t', 'q', { ...QUEUE, gen: 'other' }, now);
  cache.confirm('t', 'other', QUEUE, now);
  expect(peek()).toEqual(QUEUE);
  expect(cache.peek('t', 'other')).toBeUndefined();
});

test.each([null, 'unavailable'] as const)(
  'a configuration is not used after the store has returned %s',
  async answer => {
    const { store, cache, peek } = await start();
    expect(peek()).toEqual(QUEUE);
    store.queue = answer;
    expect(await cache.read('t', 'q')).toBe(answer);
    expect(peek()).toBeUndefined();
  },
);
