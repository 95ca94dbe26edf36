import { expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { LAYOUTS } from '../../config/layout.ts';
import { createPartSource } from '../../part/fate/sandbox-source.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { createQueueSource } from '../../redis/sandbox-source.ts';
import { createLogger } from '../../telemetry/log.ts';
import { runMember } from './run-view.ts';
import { createSandbox, driverOn, sealed, sumUp } from './testing/sandbox.ts';

/** Redis for a process that dies: after `most` commands nothing is sent any more. */
function dyingClient(redis: RedisClient, most: number): RedisClient {
  let left = most;
  const alive = () => {
    if (left-- <= 0) throw new Error('this process is dead');
  };
  return {
    ...redis,
    run: async (...args) => (alive(), redis.run(...args)),
    runBuffers: async (...args) => (alive(), redis.runBuffers(...args)),
    call: async (...args) => (alive(), redis.call(...args)),
    runNamed: async (...args) => (alive(), redis.runNamed(...args)),
    readHash: async (...args) => (alive(), redis.readHash(...args)),
  };
}

test.each(LAYOUTS)('with %s, wherever a process dies, another one brings the run to the same end', async layout => {
  const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  const s = createSandbox(redis, layout);
  const { t } = s;
  const sub = (name: string) => ({ sub: { endpoint: sealed(name, [5_000, 300_000]) } });
  await t.apply(t.routes({ x: sub('x'), y: sub('y') }));
  for (const groupKey of ['a', 'b']) await t.activate('x', groupKey);
  await t.activate('y', 'a');

  async function play(run: string, dieAfter: number) {
    await s.publish(run, 'a', { failCode: 503, failCount: 1 }, 'one');
    await s.publish(run, 'a', {}, 'two');
    await s.publish(run, 'b', { failCode: 404 }, 'three');
    const client = dyingClient(redis, dieAfter);
    const source = layout === 'parts' ? createPartSource(client) : createQueueSource(client);
    const dying = driverOn(client, source, t.nowMs, `dies${dieAfter}`);
    let died = false;
    for (let next: number | null = 0; next !== null; ) {
      try {
        next = await dying(runMember(t.tenant, run));
        t.clock.ms = Math.max(t.clock.ms, next ?? 0);
      } catch {
        died = true;
        break;
      }
    }
    // Its lease of the run, its ownership of the queue and its claims pass by.
    if (died) t.clock.ms += 30_000;
    await s.finish(run);
    const report = await s.report(run);
    if (report === undefined) throw new Error('no run');
    return { died, totals: report.totals, events: sumUp(s, report) };
  }

  const { died: never, ...whole } = await play('whole', Number.POSITIVE_INFINITY);
  expect(never).toBe(false);
  expect(whole.totals).toMatchObject({ events: 3, deliveries: 5, delivered: 4, dead: 1, pending: 0, tokens: 5 });
  let deaths = 0;
  // Each third command: a step of the run takes several, so that none of its steps is left out.
  for (let dieAfter = 0; ; dieAfter += 3) {
    const { died, ...rest } = await play(`dies-${dieAfter}`, dieAfter);
    expect({ dieAfter, ...rest }).toEqual({ dieAfter, ...whole });
    if (!died) break;
    deaths++;
  }
  expect(deaths).toBeGreaterThan(20);
  await redis.close();
});
