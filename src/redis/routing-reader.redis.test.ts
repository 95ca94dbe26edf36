import { expect, test } from 'vitest';
import { refOfStreamId } from '../core/ids/refs.ts';
import { tellReasons } from '../core/routing/told-reasons.ts';
import { createRoutingReader } from './routing-reader.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, event, items, QUEUE, START_MS, type Tenant } from './testing/tenant.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  async function start(...integrations: Parameters<Tenant['routes']>) {
    const t = createTenant(redis());
    await t.apply(t.routes(...integrations));
    const reader = createRoutingReader(redis(), t.nowMs);
    const gate = async (name: string, groupKey = 'k') => {
      const queue = await reader.readQueue(t.tenant, QUEUE);
      return reader.readGate(t.tenant, { ...queue, name: QUEUE }, t.nameOf(name), groupKey);
    };
    return { t, reader, gate };
  }

  async function publish(t: Tenant, id: string, groupKey: string | undefined, body = 'body'): Promise<string> {
    const config = await t.ingress.readQueue(t.tenant, QUEUE);
    if (config === null || config === 'unavailable') throw new Error('no queue');
    const { outcomes } = await t.ingress.ingest(t.tenant, QUEUE, config, [event(id, groupKey, body)]);
    const [outcome] = outcomes;
    if (outcome?.answer !== 'OK') throw new Error(`ingest answered ${outcome?.answer}`);
    return outcome.ref;
  }

  test('a gate is read as routing asks for it', async () => {
    const { t, gate } = await start({ x: {}, y: { sub: { route: 'paused' } }, z: { state: 'pending' } });
    await t.activate('x', 'k');
    expect(await gate('x')).toEqual({ integration: 'active', activated: true, subscription: 'open' });
    expect(await gate('x', 'other')).toEqual({ integration: 'active', activated: false, subscription: 'open' });
    expect(await gate('y')).toEqual({ integration: 'active', activated: false, subscription: 'paused' });
    expect(await gate('z')).toEqual({ integration: 'pending', activated: false, subscription: 'open' });
    expect(await gate('nobody')).toEqual({ integration: 'missing', activated: false, subscription: 'none' });
    await t.deactivate('x', 'k');
    expect(await gate('x')).toMatchObject({ activated: false });
  });

  test('what was lost is missing, and not closed', async () => {
    const { t, reader, gate } = await start({ x: {} });
    await redis().call('del', `{t:${t.tenant}}:meta`);
    expect(await gate('x')).toMatchObject({ subscription: 'missing' });
    await redis().call('del', `{q:${t.tenant}:${QUEUE}}:meta`);
    expect(await reader.readQueue(t.tenant, QUEUE)).toEqual({ state: 'missing', gen: '', cursor: '0-0' });
  });

  test('an event is found by its id for a day and more, and by its ref as long as it is kept', async () => {
    const { t, reader } = await start({ x: {} });
    const ref = await publish(t, 'order/1', 'k', 'four');
    const find = (wanted: Parameters<typeof reader.findEvent>[2]) => reader.findEvent(t.tenant, QUEUE, wanted);
    const found = await find({ eventId: 'order/1' });
    expect(found).toMatchObject({ ref, bytes: 4, meta: { id: 'order/1', groupKey: 'k', time: START_MS } });
    expect(await find({ eventId: 'order/2' })).toBeUndefined();
    expect(await reader.findEvent(t.tenant, 'another', { eventId: 'order/1' })).toBeUndefined();
    t.clock.ms += 30 * HOUR_MS;
    expect(await find({ eventId: 'order/1' })).toEqual(found);
    t.clock.ms += 30 * HOUR_MS;
    expect(await find({ eventId: 'order/1' })).toBeUndefined();
    expect(await find({ ref })).toEqual(found);
    const younger = await publish(t, 'order/1', 'k');
    expect(await find({ eventId: 'order/1' })).toMatchObject({ ref: younger });
  });

  test('a disposition is in the inbox, noted, or still open', async () => {
    const { t, reader } = await start({ x: {}, y: {} });
    await t.activate('x', 'k');
    const entries = await t.ingest(['k']);
    const [entry] = entries;
    const ref = refOfStreamId(entry?.id as string);
    const disposition = (name: string) =>
      reader.readDisposition(t.tenant, QUEUE, t.nameOf(name), { ref, groupKey: 'k' });
    expect(await disposition('x')).toEqual({
      subscription: { id: 'sub_x', behindAt: undefined },
      progress: undefined,
      activatedSinceMs: START_MS - 1_000_000,
      noted: undefined,
    });
    const queue = await t.own();
    await t.queues.next(queue, t.nowMs(), 10);
    await t.inboxes.route(t.inboxOf('x'), t.nowMs(), queue.epoch, 'gen1', t.account, items(entries));
    const why = [{ ref, ms: START_MS, text: `${t.nameOf('z')}:s,${t.nameOf('y')}:a,${t.nameOf('y')}:k` }];
    const result = { from: '0-0', to: entry?.id as string, behind: [`${t.nameOf('y')}/sub_y.inc1`], wake: [] };
    await t.queues.next(queue, t.nowMs(), 10, { ...result, counters: new Map(), why });
    expect(await disposition('x')).toMatchObject({ progress: { state: 'pending', attempts: 0 }, noted: undefined });
    await t.apply(t.routes({ x: { sub: { route: 'closed' } }, y: {} }));
    expect(await disposition('x')).toMatchObject({ subscription: undefined, progress: undefined, noted: undefined });
    const former = await reader.readDisposition(t.tenant, QUEUE, t.nameOf('x'), { ref, groupKey: 'k' }, t.inboxOf('x'));
    expect(former).toMatchObject({ subscription: undefined, progress: { state: 'pending' } });
    expect(await disposition('y')).toEqual({
      subscription: { id: 'sub_y', behindAt: '0-0' },
      progress: undefined,
      activatedSinceMs: undefined,
      noted: 'skipped_to_now',
    });
    expect(await disposition('z')).toMatchObject({
      subscription: undefined,
      progress: undefined,
      noted: 'not_subscribed',
    });
    expect(await reader.readQueue(t.tenant, QUEUE)).toEqual({ state: 'open', gen: 'gen1', cursor: entry?.id });
  });

  test('where many did not get an event, each that subscribed then is told why', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `n${i}`);
    const { t, reader } = await start(Object.fromEntries(names.map(name => [name, {}])));
    const [entry] = await t.ingest(['k']);
    const ref = refOfStreamId(entry?.id as string);
    const queue = await t.own();
    await t.queues.next(queue, t.nowMs(), 10);
    const reasons = new Map(names.map(name => [t.nameOf(name), 'not_activated' as const]));
    const why = [{ ref, ms: START_MS, text: tellReasons(new Map([...reasons, [t.nameOf('n3'), 'skipped_to_now']])) }];
    const result = { from: '0-0', to: entry?.id as string, behind: [], wake: [], counters: new Map(), why };
    await t.queues.next(queue, t.nowMs(), 10, result);
    const noted = async (name: string) =>
      (await reader.readDisposition(t.tenant, QUEUE, t.nameOf(name), { ref, groupKey: 'k' })).noted;
    expect([await noted('n0'), await noted('n39'), await noted('n3')]).toEqual([
      'not_activated',
      'not_activated',
      'skipped_to_now',
    ]);
    // Who came later did not subscribe then, nor did a stranger.
    const late = { sinceMs: START_MS + 10_001 };
    await t.apply(t.routes({ ...Object.fromEntries(names.map(name => [name, {}])), late: { sub: late } }));
    expect([await noted('late'), await noted('stranger')]).toEqual([undefined, undefined]);
  });
});
