import { expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { createSandboxStore } from '../../part/sandbox/sandbox-store.ts';
import { event, QUEUE } from '../../record/testing/tenant.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';
import { runMember } from './run-view.ts';
import { createSandbox, driverOn, sealed, sumUp } from './testing/sandbox.ts';

const DEATH = 'this process is dead';

/** Returns whether the process crashed instead of failing in another way. */
function isDeath(error: unknown): boolean {
  if (error instanceof Error && error.message === DEATH) return true;
  throw error;
}

/** Returns a Redis client for a process that crashes: after `most` commands, no commands are sent. */
function dyingClient(redis: RedisClient, most: number): RedisClient {
  let left = most;
  const alive = () => {
    if (left-- <= 0) throw new Error(DEATH);
  };
  return {
    ...redis,
    run: async (...args) => (alive(), redis.run(...args)),
    runBuffers: async (...args) => (alive(), redis.runBuffers(...args)),
    call: async (...args) => (alive(), redis.call(...args)),
    runNamed: async (...args) => (alive(), redis.runNamed(...args)),
    runNamedBuffers: async (...args) => (alive(), redis.runNamedBuffers(...args)),
    readHash: async (...args) => (alive(), redis.readHash(...args)),
  };
}

test('if a process crashes at any step, another process completes the run with the same result', async () => {
  const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  const s = createSandbox(redis);
  const { t } = s;
  const sub = (name: string) => ({ sub: { endpoint: sealed(name, [5_000, 300_000]) } });
  await t.apply(t.routes({ x: sub('x'), y: sub('y') }));
  for (const groupKey of ['a', 'b']) await t.activate('x', groupKey);
  await t.activate('y', 'a');

  async function play(run: string, dieAfter: number) {
    await s.publish(run, 'a', { failCode: 503, failCount: 1 }, 'one');
    await s.publish(run, 'a', {}, 'two');
    await s.publish(run, 'b', { failCode: 410 }, 'three');
    await s.publish(run, 'b', {}, 'four');
    const dying = driverOn(dyingClient(t.client, dieAfter), t.nowMs);
    let died = false;
    for (let next: number | null = 0; next !== null; ) {
      try {
        next = await dying(runMember(t.tenant, run));
        t.clock.ms = Math.max(t.clock.ms, next ?? 0);
      } catch (error) {
        died = isDeath(error);
        break;
      }
    }
    // The lease of the run expires.
    if (died) t.clock.ms += 30_000;
    await s.finish(run);
    const report = await s.report(run);
    if (report === undefined) throw new Error('no run');
    return { died, totals: report.totals, events: sumUp(s, report) };
  }

  const { died: never, ...whole } = await play('whole', Number.POSITIVE_INFINITY);
  expect(never).toBe(false);
  expect(whole.totals).toMatchObject({ events: 4, deliveries: 6, delivered: 5, dead: 1, pending: 0, tokens: 6 });
  let deaths = 0;
  for (let dieAfter = 0; ; dieAfter++) {
    const { died, ...rest } = await play(`dies-${dieAfter}`, dieAfter);
    expect({ dieAfter, ...rest }).toEqual({ dieAfter, ...whole });
    if (!died) break;
    deaths++;
  }
  expect(deaths).toBeGreaterThan(40);
  await redis.close();
});

test('accepts and routes an event once if a process stops at any step', async () => {
  const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  const s = createSandbox(redis);
  const { t } = s;
  await t.apply(t.routes({ x: { sub: { endpoint: sealed('x', []) } } }));
  await t.activate('x', 'a');
  const config = await t.ingress.readQueue(t.tenant, QUEUE);
  if (config === null || config === 'unavailable') throw new Error('no queue');
  let deaths = 0;
  for (let dieAfter = 0; ; dieAfter++) {
    const run = `dies-${dieAfter}`;
    const store = createSandboxStore(dyingClient(t.client, dieAfter), t.nowMs);
    const died = await store.ingest(t.tenant, QUEUE, run, config, event('one', 'a')).then(() => false, isDeath);
    expect(['OK', 'DUP']).toContain((await s.publish(run, 'a', {}, 'one')).answer);
    await s.finish(run);
    expect((await s.report(run))?.totals).toMatchObject({ events: 1, deliveries: 1, delivered: 1, pending: 0 });
    if (!died) break;
    deaths++;
  }
  expect(deaths).toBeGreaterThan(8);
  await redis.close();
});
