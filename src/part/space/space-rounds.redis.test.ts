import { expect, test } from 'vitest';
import type { TestPart } from '../../../test/support/part/part.ts';
import { createChoices } from '../../../test/support/random.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { ScriptClient } from '../call.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';
import { HOUR_MS, repeat, startAccount } from './testing/account-parts.ts';

const ROUNDS = Number(process.env.ROUNDS || 100);
const SEED = Number(process.env.SEED || 7);

onEachRedis(redis => {
  test('random rounds through two replicas, with crashes, expiry, and other limits, never exceed the limit, and store all acknowledged events', async () => {
    const { below } = createChoices(SEED);
    let limit = 40_000;
    const { parts, replicaOf, send, setLimit, stored, events, pass } = await startAccount(redis(), limit, 4);
    const dying = (t: TestPart): ScriptClient => ({
      ...t.client,
      runNamed: async (script, call) => {
        const dies = script.name !== 'ingest' && below(8) === 0;
        if (dies && below(2) === 0) throw new Error('died');
        const answer = await t.client.runNamed(script, call);
        if (dies) throw new Error('died');
        return answer;
      },
    });
    const counts: Record<string, number> = {};
    for (let round = 0; round < ROUNDS; round++) {
      const senders = parts.flatMap(t =>
        [replicaOf(t), below(3) === 0 ? replicaOf(t, dying(t)) : replicaOf(t)].map(ingest => [t, ingest] as const),
      );
      const [before, eventsBefore, acknowledged] = [await stored(), await events(), counts.OK ?? 0];
      await Promise.all(
        senders.map(async ([t, ingest]) => {
          const sizes = Array.from({ length: 1 + below(6) }, () => below(1_000));
          const answers = await send(t, sizes, ingest).catch((error: Error) => [error.message]);
          for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1;
        }),
      );
      const after = await stored();
      if (after > before) expect([round, after <= limit]).toEqual([round, true]);
      // Only acknowledged events are stored, so refused events are not.
      expect([round, (await events()) - eventsBefore]).toEqual([round, (counts.OK ?? 0) - acknowledged]);
      if (below(10) === 0) {
        pass(HOUR_MS + 60_000);
        for (const t of parts) if (below(2) === 0) await sweepAll(t);
      } else pass(below(3_000));
      if (below(15) === 0) {
        limit = 10_000 + below(60_000);
        await setLimit(limit);
      }
    }
    // This depends on the order in which the replicas get their answers.
    expect(counts.OK).toBeGreaterThan(100);
    expect(counts.LIMIT).toBeGreaterThan(200);
    expect(counts.died).toBeGreaterThan(10);
    // After crashes, the full limit can still be used.
    pass(HOUR_MS + 60_000);
    for (const t of parts) await sweepAll(t);
    pass(5_000);
    expect(await stored()).toBe(0);
    await setLimit(30_000);
    for (let i = 0; i < 5; i++) await send(parts[0] as TestPart, repeat(50, 30));
    expect(await stored()).toBe(30_000);
  }, 120_000);

  test('random rounds with an increasing number of parts only refuse events if 95 % of the limit is used', async () => {
    const { below } = createChoices(SEED);
    let limit = 100_000;
    const { parts, send, setLimit, stored, pass } = await startAccount(redis(), limit, 12);
    let refused = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const t = parts[below(1 + Math.floor((round * parts.length) / ROUNDS))] as TestPart;
      const size = below(3_000);
      const [answer] = await send(t, [size]);
      if (answer === 'LIMIT') {
        refused++;
        expect([round, (await stored()) + 250 + size > 0.95 * limit]).toEqual([round, true]);
        limit += below(50_000);
        await setLimit(limit);
      }
      pass(below(500));
    }
    expect(refused).toBeGreaterThan(ROUNDS / 50);
  }, 120_000);
});
