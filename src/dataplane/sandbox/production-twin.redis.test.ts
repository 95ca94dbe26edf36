import { expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { LAYOUTS } from '../../config/layout.ts';
import { connectRedis } from '../../redis/client.ts';
import { createSandboxClient } from '../../redis/sandbox-client.ts';
import { RUN_KEPT_MS } from '../../redis/sandbox-store.ts';
import { START_MS } from '../../redis/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import { runPartProduction } from './testing/part-production.ts';
import { countersOf, runQueueProduction, tokensOf } from './testing/queue-production.ts';
import { dumpProduction } from './testing/sandbox.ts';
import { EVENTS, NAMES, outcomeOf, prepare } from './testing/twin.ts';

const RUN = 'twin';

test.each(LAYOUTS)(
  'with %s, a run records what production records, in the same order, but for the time',
  async layout => {
    const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
    const production = await prepare(redis, layout);
    const { t } = production;
    const produced = 'part' in t ? await runPartProduction(redis, t) : await runQueueProduction(redis, production);

    const sandbox = await prepare(redis, layout);
    const before = await dumpProduction(redis, sandbox.t);
    const ids = new Map<string, string>();
    for (const [i, [groupKey, simulation]] of EVENTS.entries()) {
      const outcome = await sandbox.publish(RUN, groupKey, simulation, `e${i}`);
      if (outcome.answer === 'OK') ids.set(outcome.ref, `e${i}`);
    }
    await sandbox.finish(RUN);
    const ofRun = createSandboxClient(redis, sandbox.t.tenant, RUN, START_MS + RUN_KEPT_MS);
    expect(await outcomeOf(ofRun, sandbox, ids)).toEqual(produced.outcome);
    expect(await dumpProduction(redis, sandbox.t)).toEqual(before);

    // What was compared is not all of one sort.
    const states = Object.values(produced.outcome).flatMap(each => (each as { state?: string }).state ?? []);
    expect(Object.groupBy(states, state => state)).toMatchObject({ delivered: {}, dead: {}, pending: {} });
    expect(await countersOf(ofRun, sandbox, 'x')).toEqual(produced.counters);
    expect(await tokensOf(ofRun, sandbox, NAMES)).toBe(produced.tokens);
    expect(await tokensOf(redis, sandbox, NAMES)).toBe(0);
    await redis.close();
  },
);
