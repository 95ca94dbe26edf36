import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { redisUrl } from '../../support/redis/shared.ts';
import { lostLimits } from './limits.ts';
import { historyOf, type Kind, type Operation } from './operation.ts';
import { comeToRest } from './rest.ts';
import { runHistory, shrink, tell } from './run.ts';

/**
 * `SEEDS=1000 LENGTH=500` plays more histories than by default (`make test-model` uses 100, and `make test-mutants`
 * 20). `HISTORY` plays a history that has failed earlier.
 */
const SEEDS = Number(process.env.SEEDS || 2);
const LENGTH = Number(process.env.LENGTH || 500);
const FIRST_SEED = Number(process.env.SEED || 1);
const HISTORY = process.env.HISTORY || undefined;
/** Seeds that have detected defects, in addition to the first seeds. */
const FOUND = [1067];

let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

test('the scripts contain the limits that are reduced by this test', () => {
  const cwd = new URL('../../../src/part/', import.meta.url);
  const scripts = globSync('**/*.lua', { cwd }).map(file => readFileSync(new URL(file, cwd), 'utf8'));
  expect(lostLimits(scripts.join('\n'))).toEqual([]);
});

function histories(): [name: string, history: Operation[]][] {
  if (HISTORY !== undefined) {
    const given = JSON.parse(HISTORY) as [Kind, number][];
    return [['the given history', given.map(([kind, x]) => ({ kind, x }))]];
  }
  const seeds = Array.from({ length: SEEDS }, (_, i) => FIRST_SEED + i);
  return [...seeds, ...(FIRST_SEED === 1 ? FOUND : [])].map(seed => [`seed ${seed}`, historyOf(seed, LENGTH)]);
}

test.each(histories())(
  'a part has the same state as the reference: %s',
  async (_name, history) => {
    const failure = await runHistory(redis, redisUrl(), history, comeToRest);
    if (failure === undefined) return;
    const short =
      HISTORY === undefined && process.env.SHRINK !== 'no'
        ? await shrink(redis, redisUrl(), failure, comeToRest)
        : failure;
    expect.fail(tell(short));
  },
  300_000,
);
