import { expect, test } from 'vitest';
import { parseDeliveryState } from '../core/delivery/delivery-state.ts';
import { createControlAudit } from './control-audit.ts';
import { createDeliveryReader } from './delivery-reader.ts';
import type { Claim, Completion } from './inbox-store.ts';
import { integrationKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createInbox } from './testing/inbox.ts';
import type { SubscriptionShort } from './testing/tenant.ts';

const LEASE_MS = 25_000;
const HOUR_MS = 3_600_000;

type Taken = Claim & { readonly token: string };

onEachRedis(redis => {
  async function start(sub: SubscriptionShort = {}) {
    const it = await createInbox(redis(), { sub }, ['a', 'b', 'c']);
    const read = createDeliveryReader(redis());
    const { inbox, t } = it;
    const completion = ({ lane, ref, token }: Taken, change: Partial<Completion>): Completion => ({
      lane,
      ref,
      token,
      outcome: 'delivered',
      record: `${change.outcome ?? 'delivered'} ${t.nowMs()} 1 500 3`,
      ...change,
    });
    return {
      ...it,
      state: async () => parseDeliveryState((await read([inbox]))[0] ?? {}),
      readAs: (inc: string) => read([{ ...inbox, inc }]),
      /** Ends the attempts in one exchange; answers what is new. */
      finish: async (claims: readonly Taken[], change: Partial<Completion>) =>
        (
          await t.inboxes.complete(
            inbox,
            t.nowMs(),
            claims.map(each => completion(each, change)),
          )
        ).news,
      /** Claims what is due, as the dispatcher does; answers what is new. */
      look: async (room = 64) =>
        (await t.inboxes.exchange(inbox, t.nowMs(), [], { room, token: 'look', leaseMs: LEASE_MS })).news,
    };
  }

  const FAILED = { outcome: 'failed', attempted: 'HttpError', dueMs: 0, attempt: '1,500,3' } as const;
  const DEAD = { outcome: 'dead', attempted: 'Timeout' } as const;

  test('nothing is written before something happens, nor by an exchange that changes nothing', async () => {
    const it = await start();
    expect(await it.look()).toBeUndefined();
    const fields = await redis().readHash(integrationKeys(it.inbox.integration).sub(it.inbox.sub));
    expect(Object.keys(fields).filter(name => /deliver|dead/i.test(name))).toEqual([]);
    expect(await it.state()).toMatchObject({ attempt: undefined, dead: 0, backlog: '0' });
  });

  test('the outcome is that of the last attempt, and says since when', async () => {
    const it = await start();
    await it.publish(['a', 'b']);
    const [first, second] = await it.claim();
    if (first === undefined || second === undefined) throw new Error('nothing was due');
    const failedMs = it.t.nowMs();
    expect(await it.finish([first], { ...FAILED, dueMs: failedMs + HOUR_MS })).toEqual({
      before: { trouble: '- 0', backlog: '0' },
      now: { trouble: 'HttpError 0', backlog: '1' },
    });
    it.t.clock.ms += 5_000;
    expect(await it.finish([second], { ...FAILED, dueMs: failedMs + HOUR_MS })).toBeUndefined();
    expect(await it.state()).toMatchObject({ attempt: { outcome: 'HttpError', sinceMs: failedMs }, backlog: '1+' });
    await it.forgive();
    it.t.clock.ms += HOUR_MS;
    const deliveredMs = it.t.nowMs();
    await it.finish(await it.claim(), { attempted: 'Succeeded' });
    expect(await it.state()).toMatchObject({ attempt: { outcome: 'Succeeded', sinceMs: deliveredMs }, backlog: '0' });
  });

  test('of several in one exchange the last one counts; what was released was no attempt', async () => {
    const it = await start();
    await it.publish(['a', 'b', 'c']);
    const claims = await it.claim();
    const items = claims.map((claim, i) => ({
      lane: claim.lane,
      ref: claim.ref,
      token: claim.token,
      outcome: i === 2 ? ('released' as const) : ('delivered' as const),
      record: `delivered ${it.t.nowMs()} 1 204 3`,
      ...(i === 2 ? {} : { attempted: i === 0 ? ('DnsFailed' as const) : ('Succeeded' as const) }),
    }));
    await it.t.inboxes.complete(it.inbox, it.t.nowMs(), items);
    expect((await it.state()).attempt?.outcome).toBe('Succeeded');
  });

  test('the backlog counts what waits, not what is under way, by powers of ten', async () => {
    const it = await start({ unordered: true, cap: 100 });
    await it.publish(Array(9).fill('a'));
    expect((await it.look(1))?.now.backlog).toBe('1');
    await it.publish(['a', 'a', 'a']);
    expect((await it.look(1))?.now.backlog).toBe('2');
    expect((await it.state()).backlog).toBe('10+');
    // All of them are under way now.
    expect((await it.look(64))?.now.backlog).toBe('0');
    expect((await it.state()).backlog).toBe('0');
  });

  test('what a subscription that is paused holds is seen by the look that the router asks for', async () => {
    const it = await start();
    await it.publish(['a', 'a']);
    await it.say({ sub: { send: 'held' } });
    expect((await it.look())?.now.backlog).toBe('1');
  });

  test('what the owner skipped waits no more, before anybody looks again', async () => {
    const it = await start();
    const [, last = ''] = await it.publish(['a', 'b']);
    await it.say({ sub: { send: 'held' } });
    await it.look();
    expect((await it.state()).backlog).toBe('1+');
    expect(await it.operations.skipUpTo(it.inbox, last)).toMatchObject({ skipped: 2 });
    expect((await it.state()).backlog).toBe('0');
  });

  test('dead letters are there until they are recovered; the first of each hour is news', async () => {
    const it = await start({ unordered: true });
    const [first = '', second = '', third = '', fourth = ''] = await it.publish(['a', 'a', 'a', 'a']);
    const claims = await it.claim();
    const of = (ref: string) => claims.filter(each => each.ref === ref);
    const firstMs = it.t.nowMs();
    expect((await it.finish(of(first), DEAD))?.now.trouble).toBe('Timeout 1');
    expect(await it.state()).toMatchObject({ dead: 1, firstDead: { ms: firstMs, ref: first } });
    it.t.clock.ms += HOUR_MS - 1;
    expect(await it.finish(of(second), DEAD)).toBeUndefined();
    expect((await it.state()).firstDead).toEqual({ ms: firstMs, ref: first });
    it.t.clock.ms += 1;
    const again = await it.finish(of(third), DEAD);
    expect(again?.before).toEqual(again?.now);
    expect(await it.state()).toMatchObject({ dead: 3, firstDead: { ms: firstMs + HOUR_MS, ref: third } });
    expect((await it.state()).youngestDeadMs).toBeDefined();
    await it.finish(of(fourth), { attempted: 'Succeeded' });
    await it.forgive();
    await it.recovery.recover(it.inbox, { sinceMs: 0 });
    await it.look();
    expect((await it.state()).dead).toBe(0);
    await it.count();
  });

  test('a test event that fails is an attempt and no dead letter', async () => {
    const it = await start();
    expect(await it.recovery.sendTest(it.inbox)).toMatchObject({ answer: 'OK' });
    await it.finish(await it.claim(), DEAD);
    expect(await it.state()).toMatchObject({ attempt: { outcome: 'Timeout' }, dead: 0, firstDead: undefined });
    expect(await it.look()).toBeUndefined();
    await it.count();
  });

  test('the audit brings the same as a look at one subscription, with the generation', async () => {
    const it = await start();
    await it.publish(['a', 'b']);
    await it.finish(await it.claim(1), DEAD);
    const audit = createControlAudit(redis(), async () => {});
    const { deliveries } = await audit.readRoutes(it.t.tenant, []);
    const found = deliveries.get(it.inbox.sub) ?? {};
    expect(found['inc']).toBe(it.inbox.inc);
    expect(parseDeliveryState(found)).toEqual(await it.state());
    expect(parseDeliveryState(found)).toMatchObject({ attempt: { outcome: 'Timeout' }, dead: 1, backlog: '1+' });
  });

  test('a subscription of another generation is not read, and one that is gone is not made again', async () => {
    const it = await start();
    await it.publish(['a']);
    const claims = await it.claim();
    expect(await it.readAs('another')).toEqual([undefined]);
    const key = integrationKeys(it.inbox.integration).sub(it.inbox.sub);
    await redis().call('del', key);
    expect(await it.finish(claims, { attempted: 'Succeeded' })).toBeUndefined();
    expect(await redis().readHash(key)).toEqual({});
  });
});
