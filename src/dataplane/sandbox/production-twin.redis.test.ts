import { expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { createRunClient, partOfRun } from '../../part/sandbox/run-client.ts';
import { RUN_KEPT_MS } from '../../part/sandbox/sandbox-store.ts';
import { QUEUE, START_MS } from '../../record/testing/tenant.ts';
import { connectRedis } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';
import { readOutcome, runPartProduction } from './testing/part-production.ts';
import { dumpProduction } from './testing/sandbox.ts';
import { EVENTS, prepare } from './testing/twin.ts';

const RUN = 'twin';

test('a run records the same as production, in the same order', async () => {
  const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  const production = await prepare(redis);
  const { t } = production;
  const produced = await runPartProduction(redis, t);

  const sandbox = await prepare(redis);
  const before = await dumpProduction(redis, sandbox.t);
  const ids = new Map<string, string>();
  for (const [i, [groupKey, simulation]] of EVENTS.entries()) {
    const outcome = await sandbox.publish(RUN, groupKey, simulation, `e${i}`);
    if (outcome.answer === 'OK') ids.set(outcome.ref, `e${i}`);
  }
  await sandbox.finish(RUN);
  const ofRun = createRunClient(sandbox.t.client, sandbox.t.tenant, RUN, START_MS + RUN_KEPT_MS);
  const part = partOfRun(sandbox.t.tenant, QUEUE);
  expect(await readOutcome(ofRun, part, sandbox.t, ids)).toEqual(produced);
  expect(await dumpProduction(redis, sandbox.t)).toEqual(before);

  // The compared events have different outcomes.
  const states = Object.values(produced.outcome).flatMap(each => (each as { state?: string }).state ?? []);
  expect(Object.groupBy(states, state => state)).toMatchObject({ delivered: {}, dead: {}, pending: {} });
  expect(Number(produced.counters.delivered)).toBeGreaterThan(0);
  expect(produced.tokens).toBeGreaterThan(0);
  await redis.close();
});
