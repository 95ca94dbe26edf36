import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createExchange } from '../../part/claims/exchange.ts';
import { createEvict } from '../../part/claims/held-claims.ts';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startSink } from './testing/sink.ts';

const own = useOwnRedis();

test('an event that is claimed alone does not wait for the claims of other endpoints', async () => {
  const world = await createPartWorld(own.redis, own.server.url);
  const exchange = createExchange(own.redis);
  const evict = createEvict(own.redis);
  const fast = await startSink();
  const hanging = await startSink(() => {});
  const keys = Array.from({ length: 40 }, (_, i) => `h${i}`);
  const slow = { url: hanging.url, timeoutMs: 30_000, retryMs: [100, 100, 100, 100] };
  await world.subscribe('hanging', slow, keys, { cap: 40 });
  await world.subscribe('fast', fast, ['k'], { cap: 4 });

  /** Claims all waiting events and crashes. */
  async function crash(dispatcher: string): Promise<void> {
    const counts = { number: 1, limit: 100, held: 0, pushed: 0, bytes: 0, roomBytes: 0 };
    await exchange(world.part, { dispatcher, readyMs: 1, holdsAlone: false, ...counts }, [], 100);
    await delay(20);
    await evict(world.part, dispatcher);
  }

  await world.send('k', 'k', 'k');
  await crash('first');
  await world.send(...keys);
  await crash('second');
  // The first request is sent to the endpoint that does not respond.
  await world.change(world.rowOf('fast', { send: 'held', cap: 4 }));
  await world.startWorker('third');
  await expect.poll(() => hanging.control.inFlight, { timeout: 30_000 }).toBeGreaterThan(0);
  await world.change(world.rowOf('fast', { send: 'open', cap: 4 }));
  await expect.poll(() => fast.arrivals.length, { timeout: 25_000 }).toBe(3);
}, 120_000);
