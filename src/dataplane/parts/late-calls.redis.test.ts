import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startProxy } from './testing/proxy.ts';
import { startSink } from './testing/sink.ts';

const soon = { timeout: 30_000, interval: 10 };

const own = useOwnRedis({ appendonly: true });

async function start() {
  const world = await createPartWorld(own.redis, own.server.url);
  const sink = await startSink();
  await world.subscribe('a', sink, ['g0', 'g1']);
  const isEmpty = () => vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
  return { world, sink, isEmpty };
}

test('does not push to a dispatcher that has stopped, even if Redis runs a call late', async () => {
  const { world, sink, isEmpty } = await start();
  let makeLate: (() => Promise<unknown>) | undefined;
  const worker = await world.startWorker('d1', ({ exchange }) => ({
    async exchange(...call) {
      if (makeLate !== undefined || call[0] === undefined || sink.arrivals.length === 0) return exchange(...call);
      makeLate = () => exchange(...call);
      throw new Error('no answer');
    },
  }));
  await world.send('g0');
  await vi.waitFor(() => expect(makeLate).toBeDefined(), soon);
  await isEmpty();
  await worker.stop();
  await expect(makeLate?.()).rejects.toThrow('later exchange');
  const [body] = await world.send('g1');
  expect(await own.redis.call('hlen', world.keys.claims)).toBe(0);
  await world.startWorker('d2');
  await vi.waitFor(() => expect(sink.bodies()).toContain(body), soon);
  await isEmpty();
});

test('accepts a delivery by a stalled dispatcher, and holds its lane until the repeated attempt ends', async () => {
  const { world, sink, isEmpty } = await start();
  const proxy = await startProxy(own.server.url);
  await world.startWorker('d1', undefined, proxy.url);
  const answers: (() => void)[] = [];
  sink.control.script = (_arrival, response) => void answers.push(() => response.end());
  await world.send('g0', 'g0');
  await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
  proxy.pause();
  await world.startWorker('d2');
  await vi.waitFor(() => expect(answers).toHaveLength(2), soon);
  answers[0]?.();
  proxy.resume();
  await vi.waitFor(async () => expect((await world.counts('a'))[3]).toBe(1), soon);
  await delay(300);
  expect(answers).toHaveLength(2);
  sink.control.script = (_arrival, response) => response.end();
  answers[1]?.();
  await isEmpty();
  expect(sink.of('g0')).toHaveLength(3);
  expect((await world.counts('a')).slice(0, 4)).toEqual([0, 2, 0, 2]);
});
