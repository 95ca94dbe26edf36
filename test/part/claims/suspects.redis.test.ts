import { expect, test } from 'vitest';
import { POISON_LAPSES } from '../../../src/dataplane/dispatcher/deliver.ts';
import { onEachRedis } from '../../../src/redis/testing/each-redis.ts';
import { READY_MS, startPart } from '../../support/part/part.ts';
import { NOT_PUSHED } from '../../support/part/part-inbox.ts';

const KEYS = Array.from({ length: 64 }, (_, i) => `g${i}`);

onEachRedis(redis => {
  test('no event becomes a dead letter, even if many dispatchers fail with as many claims as possible', async () => {
    const { t } = await startPart(redis(), { a: { cap: KEYS.length } }, KEYS);
    await t.send(...KEYS);
    for (let deaths = 0; deaths < POISON_LAPSES + 1; deaths++) {
      const { name, exchange } = t.dispatcher(`d${deaths}`);
      const { claims } = await exchange(KEYS.length, NOT_PUSHED);
      claims.push(...(await exchange(KEYS.length, NOT_PUSHED)).claims);
      // After the second failure, each of these events may be the cause.
      expect(claims).toHaveLength(deaths < 2 ? KEYS.length : 1);
      t.clock.ms += READY_MS;
      await t.evict(name);
    }
    const d = t.dispatcher('last');
    const lapses: number[] = [];
    const claim = async () => (await d.exchange(KEYS.length, NOT_PUSHED)).claims;
    for (let claims = await claim(); claims.length > 0; claims = await claim()) {
      for (const each of claims) {
        lapses.push(each.lapses);
        d.end(each);
      }
    }
    expect(lapses).toHaveLength(KEYS.length);
    expect(Math.max(...lapses)).toBeLessThan(POISON_LAPSES);
  });
});
