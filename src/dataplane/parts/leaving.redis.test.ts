import { expect, test, vi } from 'vitest';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startSink } from './testing/sink.ts';

const soon = { timeout: 10_000, interval: 10 };

const own = useOwnRedis();

test('sends events that another dispatcher returned when it stopped, even without other events', async () => {
  const world = await createPartWorld(own.redis, own.server.url);
  const answers: (() => void)[] = [];
  const sink = await startSink((_arrival, response) => void answers.push(() => response.end()));
  await world.subscribe('a', { ...sink, timeoutMs: 60_000 }, ['g0', 'g1'], { cap: 1 });
  const stopping = await world.startWorker('d1');
  const [first = '', second = ''] = await world.send('g0', 'g1');
  await vi.waitFor(() => expect(sink.bodies()).toEqual([first]), soon);
  // The dispatcher has claimed both events, but makes one attempt at a time.
  await vi.waitFor(async () => expect(await own.redis.call('hlen', world.keys.claims)).toBe(2), soon);
  await world.startWorker('d2');
  await vi.waitFor(async () => expect(await own.redis.call('hexists', world.keys.ready, 'd2')).toBe(1), soon);
  const stopped = stopping.stop();
  // The attempt in progress continues.
  await vi.waitFor(() => expect(sink.bodies()).toEqual([first, second]), soon);
  for (const answer of answers) answer();
  await stopped;
  await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
  expect(sink.bodies()).toEqual([first, second]);
});
