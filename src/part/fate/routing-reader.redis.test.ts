import { expect, test } from 'vitest';
import { event, row } from '../../../test/support/part/part.ts';
import { createPartInbox, type InboxShort } from '../../../test/support/part/part-inbox.ts';
import { dispositionOf } from '../../core/routing/event-disposition.ts';
import { inboxMember } from '../../plane/inbox-ref.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { inboxRefOf } from '../inbox/ref-names.ts';
import { HOUR_MS, slotOf } from '../keys.ts';
import { streamIdOf } from '../lanes/ref.ts';
import { eventIdOf } from '../log/event-id.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';
import { createPartGateReader } from './gate-reader.ts';
import { createPartRoutingReader } from './routing-reader.ts';

onEachRedis(redis => {
  async function start(short: InboxShort = {}) {
    const inbox = await createPartInbox(redis(), short, ['k']);
    const { tenant, queue } = inbox.part.part;
    const { integration, sub, inc } = inbox.inbox;
    const t = tenantKeys(tenant);
    await redis().call('hset', t.meta, 'ready', '1');
    await redis().call('hset', t.subs(queue), integration, `${sub}.${inc}`);
    const reader = createPartRoutingReader(inbox.client, inbox.t.nowMs, () => 'active');
    const gates = createPartGateReader(inbox.client, () => [queue]);
    const gate = async (groupKey = 'k', of = integration) =>
      reader.readGate(tenant, { ...(await reader.readQueue(tenant, queue)), name: queue }, of, groupKey);
    /** Returns the routing as REST does. */
    async function fate(ref: string, groupKey = 'k', of = integration) {
      const found = await reader.findEvent(tenant, queue, { ref });
      const former = await reader.readFormerInboxes(tenant, queue, ref);
      const deleted = former.findLast(inbox => inbox.integration === of);
      const reading = await reader.readDisposition(tenant, queue, of, { ref, groupKey }, deleted);
      const { cursor } = await reader.readQueue(tenant, queue);
      const facts = {
        id: found?.id ?? '',
        groupKey,
        cursor,
        integration: 'active',
        nowMs: inbox.t.nowMs(),
        wasRouted: deleted !== undefined,
      } as const;
      const { disposition, reason, progress } = dispositionOf({ ...facts, ...reading });
      return reason ?? progress?.state ?? disposition;
    }
    const isOpen = (groupKey: string) => gates.isOpen(tenant, integration, groupKey);
    const isClosed = (groupKey: string) => gates.isClosed(tenant, integration, groupKey);
    /**
     * Records a group key as the controller does: after the parts that it closes, and before the parts that it opens.
     */
    async function record(groupKey: string, isActive: boolean, sinceMs = 1) {
      const i = integrationKeys(integration);
      await redis().call('hset', i.meta, 'ready', '1', 'state', 'active');
      await redis().call('hset', tenantKeys(tenant).index, `i:${integration}`, '');
      if (isActive) await redis().call('hset', i.act, groupKey, sinceMs);
      else await redis().call('hdel', i.act, groupKey);
    }
    await record('k', true);
    return {
      ...inbox,
      record,
      gates,
      integration,
      isClosed,
      tenant,
      queue,
      reader,
      gate,
      fate,
      isOpen,
      tenantMeta: t.meta,
    };
  }

  test('a gate is read from the same data as for routing', async () => {
    const { gate, gates, integration, say, t, isOpen, isClosed, record } = await start();
    expect(await gate()).toEqual({ integration: 'active', activated: true, subscription: 'open' });
    expect(await gate('other')).toMatchObject({ activated: false, subscription: 'open' });
    expect(await gate('k', 'int_other')).toMatchObject({ subscription: 'none' });
    expect([await isOpen('k'), await isOpen('other')]).toEqual([true, false]);
    expect(await isClosed('k')).toBe(false);
    // The response for another tenant does not depend on this.
    await redis().call('hset', tenantKeys('ten_another').meta, 'ready', '1');
    expect(await gates.isClosed('ten_another', integration, 'k')).toBe(true);
    await say({ sub: { route: 'paused' } });
    expect(await gate()).toMatchObject({ activated: true, subscription: 'paused' });
    await say({ sub: { route: 'closed' } });
    expect(await gate()).toMatchObject({ subscription: 'none' });
    await t.deactivate('x', 'k');
    expect(await gate()).toMatchObject({ activated: false });
    // The state of other parts is still returned.
    expect([await isOpen('k'), await isClosed('k')]).toEqual([false, false]);
    await record('k', false);
    expect([await isOpen('k'), await isClosed('k')]).toEqual([false, true]);
    await t.activate('x', 'k');
    expect(await isOpen('k')).toBe(false);
  });

  test('lost data is reported as missing, and not as closed', async () => {
    const { t, gate, isOpen, reader, tenant, queue, tenantMeta } = await start();
    await redis().call('hdel', t.keys.keys, '');
    expect(await gate()).toMatchObject({ subscription: 'missing' });
    expect(await isOpen('k')).toBe(false);
    await redis().call('hset', t.keys.keys, '', '1');
    expect(await isOpen('k')).toBe(true);
    await redis().call('del', tenantMeta);
    expect(await gate()).toMatchObject({ subscription: 'missing' });
    expect(await isOpen('k')).toBe(false);
    await redis().call('del', t.keys.meta);
    expect(await reader.readQueue(tenant, queue)).toEqual({ state: 'missing', gen: '', cursor: '0-0' });
  });

  test('the stored bytes are the used bytes of the quota, or 0 without a part', async () => {
    const { reader, tenant, queue, part, t } = await start();
    expect(await reader.readStoredBytes(tenant, queue)).toBe(0);
    await part.ingest(event('k', { body: Buffer.alloc(1_000) }));
    const stored = await reader.readStoredBytes(tenant, queue);
    expect(stored).toBeGreaterThan(1_000);
    expect(stored).toBe(Number((await t.hash('meta')).bytes));
    expect(await reader.readStoredBytes(tenant, 'another')).toBe(0);
  });

  test('a search in a stream uses two commands because a producer may have many streams', async () => {
    const { tenant, queue, part, client, t } = await start();
    await part.ingest(event('k', { senderId: 'order/1', meta: JSON.stringify({ i: 'order/1', s: '/x' }) }));
    let commands = 0;
    const counted = new Proxy(client, {
      get(target, name) {
        commands++;
        return Reflect.get(target, name);
      },
    });
    const reader = createPartRoutingReader(counted, t.nowMs, () => 'active');
    expect(await reader.findEvent(tenant, queue, { eventId: 'order/1' })).toBeDefined();
    expect(await reader.findEvent(tenant, queue, { eventId: 'order/2' })).toBeUndefined();
    expect(commands).toBe(4);
  });

  test('the last of several events with the same id is found', async () => {
    const { reader, tenant, queue, part, t } = await start();
    const store = () =>
      part.ingest(event('k', { senderId: 'order/1', meta: JSON.stringify({ i: 'order/1', s: '/x' }) }));
    const refOf = (stored: Awaited<ReturnType<typeof store>>) =>
      stored.answer === 'OK' && stored.events[0] !== undefined && 'ref' in stored.events[0] ? stored.events[0].ref : '';
    const first = refOf(await store());
    t.clock.ms += 23 * 3_600_000;
    expect((await reader.findEvent(tenant, queue, { eventId: 'order/1' }))?.id).toBe(streamIdOf(first));
    t.clock.ms += 90 * 60_000;
    expect(await reader.findEvent(tenant, queue, { eventId: 'order/1' })).toBeUndefined();
    const second = refOf(await store());
    expect(second).not.toBe(first);
    expect((await reader.findEvent(tenant, queue, { eventId: 'order/1' }))?.id).toBe(streamIdOf(second));
  });

  test('an event is found by the id of its sender after the clock was set back', async () => {
    const { reader, tenant, queue, part, t } = await start();
    await part.ingest(event('k', { senderId: 'order/1', meta: JSON.stringify({ i: 'order/1', s: '/x' }) }));
    t.clock.ms -= 5 * 3_600_000;
    expect(await reader.findEvent(tenant, queue, { eventId: 'order/1' })).toMatchObject({ meta: { id: 'order/1' } });
  });

  test('an event is found by the id of its sender, by the id of Sluice, and by its ref', async () => {
    const { t, reader, tenant, queue, part } = await start();
    const meta = JSON.stringify({ i: 'order/1', s: '/x' });
    const stored = await part.ingest(event('k', { senderId: 'order/1', meta }), event('k'));
    const [first, second] = stored.answer === 'OK' ? stored.events.map(each => ('ref' in each ? each.ref : '')) : [];
    const find = (wanted: Parameters<typeof reader.findEvent>[2]) => reader.findEvent(tenant, queue, wanted);
    const found = await find({ eventId: 'order/1' });
    const ref = inboxRefOf(first as string);
    expect(found).toMatchObject({
      ref,
      id: streamIdOf(first as string),
      bytes: 4,
      meta: { id: 'order/1', groupKey: 'k' },
    });
    const own = await find({ ref: inboxRefOf(second as string) });
    expect(own?.meta.id).toMatch(/^evt_/);
    expect(await find({ eventId: own?.meta.id as string })).toEqual(own);
    expect(await find({ eventId: 'order/2' })).toBeUndefined();
    // The event only has the id of its sender.
    expect(await find({ eventId: eventIdOf(t.part, first as string) })).toBeUndefined();
    expect(await reader.findEvent(tenant, 'another', { eventId: 'order/1' })).toBeUndefined();
    t.clock.ms += 23 * 3_600_000;
    expect(await find({ eventId: 'order/1' })).toEqual(found);
    await redis().call('del', t.keys.log);
    expect(await find({ eventId: 'order/1' })).toBeUndefined();
  });

  test('an event contains its destinations, or the reason', async () => {
    const { fate, publish, drain, t, say, part, slot, record } = await start();
    const [sent, other] = (await publish(['k', 'other'])) as [string, string];
    expect(await fate(sent)).toBe('pending');
    await drain();
    expect(await fate(sent)).toBe('delivered');
    expect(await fate(other, 'other')).toBe('not_activated');
    await t.activate('x', 'other');
    expect(await fate(other, 'other')).toBe('not_activated');
    expect(await fate(sent, 'k', 'int_other')).toBe('not_subscribed');
    const [without] = (await publish([''])) as [string];
    expect(await fate(without, '')).toBe('missing_group_key');
    await say({ sub: { route: 'paused' } });
    const [held] = (await publish(['k'])) as [string];
    expect(await fate(held)).toBe('waiting');
    const [late] = (await publish(['late'])) as [string];
    expect(await fate(late, 'late')).toBe('not_activated');
    await t.activate('x', 'late');
    expect(await fate(late, 'late')).toBe('not_activated');
    await part.setRow('sub_x0123456789abcdefghj', {}, 'skip');
    expect(await fate(held)).toBe('skipped_to_now');
    // Former activations are not stored.
    await part.change({ kind: 'off', slot, groupKey: 'k' });
    await record('k', false);
    expect(await fate(held)).toBe('not_activated');
    await record('k', true, t.clock.ms);
    await t.activate('x', 'k');
    expect(await fate(held)).toBe('not_activated');
    await redis().call('hdel', t.keys.keys, '');
    const [kept] = (await publish(['k'])) as [string];
    expect(await fate(kept)).toBe('waiting');
    await redis().call('hset', t.keys.keys, '', '1');
    await part.advanceAll();
    expect(await fate(kept)).toBe('pending');
    await say({ sub: { route: 'closed' } });
    const [refused] = (await publish(['k'])) as [string];
    expect(await fate(refused)).toBe('not_subscribed');
  });

  test('an event from before the subscription was skipped, unless its group key was not active', async () => {
    const { fate, publish, t, part, slot, say, record } = await start();
    await part.change({ kind: 'off', slot, groupKey: 'k' }, { kind: 'drop', slot });
    const [early, other] = (await publish(['k', 'other'])) as [string, string];
    expect(await fate(early)).toBe('not_subscribed');
    await say({});
    await t.activate('x', 'k');
    await t.activate('x', 'other');
    await record('other', true, t.clock.ms);
    expect(await fate(early)).toBe('skipped_to_now');
    expect(await fate(other, 'other')).toBe('not_activated');
    await say({ sub: { route: 'closed' } });
    expect(await fate(early)).toBe('not_subscribed');
  });

  test.each([
    ['Retain', undefined, 'pending'],
    ['Delete', 'delete', 'routed'],
  ] as const)('an event that was routed stays routed after its subscription is deleted: %s', async (_, how, open) => {
    const w = await start();
    const { fate, publish, drain, part, slot, inbox } = w;
    const { sub, integration } = inbox;
    await part.change({ kind: 'meta', field: 'retentionMs', value: String(24 * HOUR_MS) });
    const [done] = (await publish(['k'])) as [string];
    await drain();
    part.clock.ms += HOUR_MS;
    const [waits, other] = (await publish(['k', 'other'])) as [string, string];
    const drop = { kind: 'drop', slot, inbox: inboxMember(inbox), ...(how && { how }) } as const;
    await part.change({ kind: 'off', slot, groupKey: 'k' }, drop);
    const subs = tenantKeys(w.tenant).subs(w.queue);
    await redis().call('hdel', subs, integration);
    await sweepAll(part);
    const fates = async () => [await fate(done), await fate(waits), await fate(other, 'other')];
    expect(await fates()).toEqual(['delivered', open, 'not_subscribed']);
    expect(await fate(done, 'k', 'int_other')).toBe('not_subscribed');

    const again = slotOf(sub, 'inc2');
    await part.change(
      { kind: 'row', slot: again, row: row({ integration }) },
      { kind: 'on', slot: again, groupKey: 'k' },
    );
    await redis().call('hset', subs, integration, `${sub}.inc2`);
    expect(await fates()).toEqual(['delivered', open, 'not_activated']);

    part.clock.ms += 24 * HOUR_MS - 1;
    await sweepAll(part);
    expect(await fate(waits)).toBe(open);
    part.clock.ms += 1;
    await sweepAll(part);
    expect(await redis().call('exists', part.keys.former, part.keys.dropped)).toBe(0);
  });

  test('a deleted subscription to which nothing was routed does not leave anything behind', async () => {
    const { part, slot, inbox } = await start();
    await part.change({ kind: 'drop', slot, inbox: inboxMember(inbox) });
    expect(await redis().call('exists', part.keys.former)).toBe(0);
  });
});
