import { expect, test } from 'vitest';
import { putRoutes } from '../../../test/support/part/routes.ts';
import { createIngressReader } from '../../record/ingress-store.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import { accountKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { partKeys } from '../keys.ts';
import { createPartsControl } from './parts-control.ts';

onEachRedis(redis => {
  test('ingress reads the events per second that the controller has written for the account', async () => {
    const t = createTenant(redis());
    const metaOf = (tenant: string, queue: string) => partKeys({ tenant, queue, gen: '', number: 0 }).meta;
    const { readQueue } = createIngressReader(redis(), t.nowMs, () => {}, metaOf);
    async function write(limit: { eventsPerSecond?: number }): Promise<void> {
      // A new controller each time, which only knows the stored limits from the record.
      const control = createPartsControl(redis(), t.control, t.nowMs);
      const want = { ...t.routes({}), ...limit };
      await putRoutes(control, { fence: 1, want, isKnown: true, openKeys: () => new Map() });
      expect((await control.readTenant(t.tenant, 1)).routes).toEqual(want);
    }
    const read = async () => {
      const found = await readQueue(t.tenant, QUEUE);
      return found === null || found === 'unavailable' ? found : [found.payer, found.eventsPerSecond];
    };
    await write({});
    expect(await read()).toEqual([t.account, undefined]);
    await write({ eventsPerSecond: 3 });
    expect(await read()).toEqual([t.account, 3]);
    await write({ eventsPerSecond: 0 });
    expect(await read()).toEqual([t.account, 0]);
    await write({});
    expect(await read()).toEqual([t.account, undefined]);
  });

  test('the account knows the stored bytes of its streams before its limit is in force', async () => {
    const t = createTenant(redis());
    const control = createPartsControl(redis(), t.control, t.nowMs);
    const part = { tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 };
    async function write(limits: { storedBytes?: number; payer?: string }): Promise<void> {
      const want = { ...t.routes({}), ...limits };
      await putRoutes(control, { fence: 1, want, isKnown: true, openKeys: () => new Map() });
      expect((await control.readTenant(t.tenant, 1)).routes).toEqual(want);
    }
    const space = async (account = t.account) => Object.values(await redis().readHash(accountKeys(account).space));
    await write({});
    await redis().call('hset', partKeys(part).meta, 'bytes', '500', 'space', '9', 'spaceSeq', '1');
    expect(await space()).toEqual([]);
    await write({ storedBytes: 10_000 });
    expect(await space()).toEqual(['2 500 0']);
    const { storedMax, space: left } = await redis().readHash(partKeys(part).meta);
    expect([storedMax, left]).toEqual(['10000', undefined]);
    // So does another account with the same limit.
    const payer = `${t.account}other`;
    await write({ storedBytes: 10_000, payer });
    expect(await space(payer)).toEqual(['2 500 0']);
  });
});
