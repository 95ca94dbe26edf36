import { expect, test } from 'vitest';
import { inboxKeys, integrationKeys, tenantKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, items, QUEUE, START_MS } from './testing/tenant.ts';

const LEASE_MS = 20_000;

onEachRedis(redis => {
  /** A subscription with one claimed event is deleted, and one of the same name is made. */
  async function makeAgain() {
    const t = createTenant(redis());
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'k');
    const route = async (inbox = t.inboxOf('x')) => {
      const entries = await t.ingest(['k']);
      return t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', 'acc_payer', items(entries));
    };
    await route();
    const claim = (inbox = t.inboxOf('x')) => t.inboxes.claim(inbox, t.nowMs(), 64, 't', LEASE_MS);
    const first = await claim();
    if (first.answer !== 'OK') throw new Error(first.answer);
    const [claimed] = first.claims;
    await t.apply(t.routes({ x: { sub: { inc: 'inc2' } } }));
    const counts = async () => {
      const fields = await redis().readHash(integrationKeys(t.nameOf('x')).sub('sub_x'));
      return Object.fromEntries(Object.entries(fields).filter(([name]) => name.startsWith('n:')));
    };
    return { t, route, claim, claimed, counts };
  }

  test('what its predecessor left behind is not claimed for the subscription that is made again', async () => {
    const { t, claim } = await makeAgain();
    t.clock.ms += LEASE_MS;
    expect(await claim()).toEqual({ answer: 'GONE' });
    expect(await claim(t.inboxOf('x', 'inc2'))).toMatchObject({ answer: 'OK', claims: [] });
  });

  test('nothing is routed to the inbox of its predecessor, by a router that has not heard yet', async () => {
    const { t, route, counts } = await makeAgain();
    expect(await route()).toEqual({ answer: 'GONE' });
    expect(await counts()).toEqual({});
    expect(await route(t.inboxOf('x', 'inc2'))).toMatchObject({ answer: 'OK', flags: 'r' });
    expect(await counts()).toEqual({ 'n:routed': '1' });
  });

  test('how an attempt of its predecessor ends is not counted for it, nor what retention ends there', async () => {
    const { t, claimed, counts, route } = await makeAgain();
    const { lane, ref } = claimed as NonNullable<typeof claimed>;
    const completion = { lane, ref, token: 't', outcome: 'delivered' as const, record: 'delivered' };
    expect((await t.inboxes.complete(t.inboxOf('x'), t.nowMs(), [completion])).answers).toEqual(['OK']);
    await route(t.inboxOf('x', 'inc2'));
    await t.inboxes.expire(t.inboxOf('x'), t.nowMs(), `${t.nowMs() + 1}-0`);
    expect(await counts()).toEqual({ 'n:routed': '1' });
    expect(await redis().call('zcard', inboxKeys(t.nameOf('x'), 'sub_x', 'inc1').pending)).toBe(0);
  });

  test('a queue that the tenant does not have is gone, one whose state is missing is closed', async () => {
    const t = createTenant(redis());
    expect(await t.queues.own(t.queue, t.nowMs(), 'router')).toEqual({ answer: 'CLOSED' });
    await t.apply(t.routes({ x: {} }));
    await t.control.dropQueue(1, t.tenant, QUEUE, 'gen1');
    expect(await t.queues.own(t.queue, t.nowMs(), 'router')).toEqual({ answer: 'GONE' });
    await redis().call('del', tenantKeys(t.tenant).meta);
    expect(await t.queues.own(t.queue, t.nowMs(), 'router')).toEqual({ answer: 'CLOSED' });
  });
});
