import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startSink } from './testing/sink.ts';

const soon = { timeout: 30_000, interval: 10 };
const LATE_MS = 600;
const KEYS = Array.from({ length: 10 }, (_, i) => `g${i}`);

const own = useOwnRedis({ appendonly: true });

/** Everything that Redis sends arrives so much later, in the same order. */
function late({ exchange, readBodies, pushes }: PartWorkerDeps): Partial<PartWorkerDeps> {
  const wait =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      const answer = await call(...args);
      await delay(LATE_MS);
      return answer;
    };
  return {
    exchange: wait(exchange),
    readBodies: wait(readBodies),
    pushes: {
      ...pushes,
      fence: wait(pushes.fence),
      listen: (channel, listener) =>
        pushes.listen(channel, {
          ...listener,
          onMessage: message => void setTimeout(() => listener.onMessage(message), LATE_MS),
        }),
    },
  };
}

test('sends each event once if everything from Redis arrives 600 ms late, with few calls', async () => {
  const world = await createPartWorld(own.redis, own.server.url);
  const sink = await startSink();
  await world.subscribe('a', sink, KEYS, { cap: 64 });
  let returned = 0;
  let exchanges = 0;
  await world.startWorker('d1', deps => {
    const slow = late(deps);
    return {
      ...slow,
      exchange(part, holding, completions, most) {
        exchanges++;
        returned += completions.filter(({ outcome }) => outcome === 'released').length;
        return (slow.exchange as PartWorkerDeps['exchange'])(part, holding, completions, most);
      },
    };
  });
  // Connects to the endpoint.
  const bodies = await world.send('g0');
  await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
  for (let round = 0; round < 4; round++) bodies.push(...(await world.send(...KEYS)));
  await vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
  for (const key of KEYS) expect(sink.of(key)).toEqual(bodies.filter(body => body.startsWith(key)));
  // A machine that is busy adds to these 600 ms.
  expect(returned).toBeLessThan(bodies.length / 4);
  expect(exchanges).toBeLessThan(bodies.length);
});
