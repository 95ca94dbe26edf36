import { afterAll, beforeAll, expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { inboxKeys, integrationKeys, queueKeys } from '../../redis/keys.ts';
import { createTenant, QUEUE } from '../../redis/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type QueueRouterDeps, routeQueue } from './queue.ts';

const HOUR_MS = 3_600_000;
const STEP_MS = HOUR_MS / 6;

let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

/**
 * A queue whose subscription `y` is paused. The queue gets another event after each batch, `steps` times, each ten minutes
 * after the one before: the router never finds it empty meanwhile. `onStep(n)` runs before the n-th of them.
 */
async function start(retentionMs: number) {
  const t = createTenant(redis);
  const routes = (ms: number, route: 'open' | 'paused' = 'paused') =>
    t.routes({ x: {}, y: { sub: { route } } }, { retentionMs: ms });
  await t.apply(routes(retentionMs));
  for (const name of ['x', 'y']) await t.activate(name, 'k');
  const length = async () => Number(await redis.call('xlen', queueKeys(t.tenant, QUEUE, 'gen1').events));
  const deps: Omit<QueueRouterDeps, 'queues'> = {
    inboxes: t.inboxes,
    ledger: t.ledger,
    owner: 'A',
    nowMs: t.nowMs,
    signal: new AbortController().signal,
    alarm: () => {},
    lower: async () => {},
    onBatch: () => {},
  };
  const trimmed = new Map<string, number>();
  return {
    t,
    routes,
    length,
    run: async (steps: number, onStep: (step: number) => Promise<unknown> = async () => {}) => {
      let step = 0;
      const next: QueueRouterDeps['queues']['next'] = async (...args) => {
        const committed = args[3] !== undefined;
        if (committed && step < steps) {
          t.clock.ms += STEP_MS;
          await t.ingest(['k']);
          await onStep(++step);
        }
        return t.queues.next(args[0], t.nowMs(), args[2], args[3]);
      };
      await t.ingest(['k']);
      const dueMs = await routeQueue({ ...deps, queues: { ...t.queues, next } }, t.queue, trimmed);
      return { dueMs, steps: step };
    },
    expired: async () => {
      const fields = await redis.readHash(integrationKeys(t.nameOf('y')).sub('sub_y'));
      return fields['n:expired'] ?? '0';
    },
    open: async (name: string) =>
      Number(await redis.call('zcard', inboxKeys(t.nameOf(name), `sub_${name}`, 'inc1').pending)),
  };
}

test('a longer retention holds for a queue that never empties: what waits for a paused subscription stays', async () => {
  const { t, routes, run, length, open, expired } = await start(HOUR_MS);
  const { steps } = await run(12, async step => step === 3 && (await t.apply(routes(168 * HOUR_MS))));
  expect(steps).toBe(12);
  expect(await length()).toBe(13);
  const plan = await t.apply(routes(168 * HOUR_MS, 'open'));
  await t.control.wake(1, t.tenant, QUEUE, plan.opened);
  await run(0);
  expect([await open('y'), await expired()]).toEqual([14, '0']);
});

test('a shorter retention holds for a queue that never empties: what is too old by now goes', async () => {
  const { t, routes, run, length } = await start(168 * HOUR_MS);
  const lengths: number[] = [];
  const { dueMs } = await run(12, async step => {
    if (step === 3) await t.apply(routes(HOUR_MS));
    lengths.push(await length());
  });
  expect(lengths).toHaveLength(12);
  // An hour of events, one each ten minutes, and the two that came before the next look.
  expect(lengths.at(-1)).toBeLessThanOrEqual(8);
  expect(dueMs).toBeLessThanOrEqual(t.nowMs() + HOUR_MS);
});
