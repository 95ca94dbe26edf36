import fc from 'fast-check';
import { expect, test } from 'vitest';
import { onEachRedis } from '../../src/redis/testing/each-redis.ts';
import { redisClusterUrl, redisUrl } from '../support/redis/shared.ts';
import { type Step, startHistory } from './history.ts';

/** The number of histories. `make test-model` and `make test-mutants` use 120. */
const HISTORIES = Number(process.env.HISTORIES || 40);

const WEIGHTS: Readonly<Record<Step, number>> = {
  ingest: 6,
  exchange: 6,
  'lose answer': 1,
  'lose pushes': 1,
  'read pushes': 4,
  end: 8,
  pause: 1,
  advance: 1,
  hold: 1,
  'toggle key': 2,
  die: 1,
  evict: 1,
  reclaim: 1,
  wait: 3,
};
const step = fc.record({
  kind: fc.oneof(
    ...Object.entries(WEIGHTS).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as Step) })),
  ),
  n: fc.nat({ max: 1_000 }),
});

onEachRedis(redis => {
  test('no history of a part loses events, or sends them early, out of order, or past a gate; events are charged and recorded once', async () => {
    const url = redis().cluster ? redisClusterUrl() : redisUrl();
    const numRuns = redis().cluster ? Math.ceil(HISTORIES / 8) : HISTORIES;
    let steps = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 160, size: 'max' }), async history => {
        const { step: play, finish, close } = await startHistory(redis(), url);
        try {
          for (const { kind, n } of history) await play(kind, n);
          await finish();
          steps += history.length;
        } finally {
          close();
        }
      }),
      { numRuns, seed: 1 },
    );
    expect(steps).toBeGreaterThan(50 * numRuns);
  });
});
