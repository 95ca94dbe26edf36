import { expect, test } from 'vitest';
import { createAuditedPart } from '../../../test/support/controller/audited-part.ts';
import { integrationKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

onEachRedis(redis => {
  test('finds and repairs activations that are missing or should not exist', async () => {
    const { t } = await createAuditedPart(redis());
    const { act } = integrationKeys(t.integration);
    const recorded = async () => ((await redis().call('hkeys', act)) as string[]).toSorted();
    expect(await recorded()).toEqual(['blue', 'green', 'red']);
    expect(await t.look()).toEqual([]);
    await redis().call('hdel', act, 'red');
    await redis().call('hset', act, 'black', 5);
    expect(await t.look()).toMatchObject([
      { what: 'activation', removes: false, pair: { integration: 'ada', groupKey: 'red' } },
      { what: 'activation', removes: true, pair: { integration: 'ada', groupKey: 'black' } },
    ]);
    await t.pass();
    expect(await recorded()).toEqual(['blue', 'green', 'red']);
    expect(await t.look()).toEqual([]);
  });

  test('treats an invalid time as missing', async () => {
    const { t } = await createAuditedPart(redis());
    await redis().call('hset', integrationKeys(t.integration).act, 'red', 'x');
    expect(await t.look()).toMatchObject([{ what: 'activation', removes: false, pair: { groupKey: 'red' } }]);
    await t.pass();
    expect(await t.look()).toEqual([]);
  });
});
