import { expect, test, vi } from 'vitest';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startSink } from './testing/sink.ts';

const soon = { timeout: 30_000, interval: 5 };

const own = useOwnRedis();

/** A worker that is stopped during an attempt. `fault` runs before each exchange after the end of the attempt. */
async function startStopping(fault: (exchanges: number) => void) {
  const world = await createPartWorld(own.redis, own.server.url);
  const answers: (() => void)[] = [];
  const sink = await startSink((_arrival, response) => void answers.push(() => response.end()));
  await world.subscribe('a', { url: sink.url }, ['k']);
  const clock = { aheadMs: 0 };
  let isStopping = false;
  let exchanges = 0;
  const worker = await world.startWorker('d1', ({ exchange }) => ({
    monotonicMs: () => performance.now() + clock.aheadMs,
    async exchange(...args) {
      if (isStopping) fault(++exchanges);
      return exchange(...args);
    },
  }));
  await world.send('k');
  await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
  isStopping = true;
  const stopped = worker.stop();
  answers[0]?.();
  return { world, sink, clock, stopped, exchanges: () => exchanges };
}

test('keeps completed deliveries while Redis does not respond, and does not send them again', async () => {
  const { world, sink, stopped } = await startStopping(exchanges => {
    if (exchanges <= 3) throw new Error('no answer');
  });
  await stopped;
  expect((await world.counts('a'))[3]).toBe(1);
  expect(await world.isEmpty()).toBe(true);
  expect(sink.arrivals).toHaveLength(1);
});

test('stopping takes at most 10 s while Redis is unavailable', async () => {
  const clock = { add: (_ms: number) => {} };
  const it = await startStopping(() => {
    clock.add(4_000);
    throw new Error('no answer');
  });
  clock.add = ms => (it.clock.aheadMs += ms);
  const before = performance.now();
  await it.stopped;
  expect(it.clock.aheadMs).toBeGreaterThanOrEqual(8_000);
  expect(it.clock.aheadMs + performance.now() - before).toBeLessThan(20_000);
  expect((await it.world.counts('a'))[3]).toBe(0);
});
