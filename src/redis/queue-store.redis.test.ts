import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { refOfStreamId } from '../core/ids/refs.ts';
import { BUCKET_MS, queueKeys } from './keys.ts';
import { type Account, OWNER_LEASE_MS, type QueuePage, wakeEntry } from './queue-store.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, QUEUE, START_MS } from './testing/tenant.ts';

const NOTHING: Account = { counters: new Map(), why: [] };
const EMPTY = { ...NOTHING, behind: [], wake: [] };

onEachRedis(redis => {
  async function start(queue = {}) {
    const t = createTenant(redis());
    await t.apply(t.routes({}, queue));
    const keys = queueKeys(t.tenant, QUEUE, 'gen1');
    return { t, keys };
  }

  describe('own', () => {
    test('one owner at a time; another takes over when the lease has passed, with a higher epoch', async () => {
      const { t } = await start();
      await t.ingest(['a']);
      const first = await t.own('A');
      expect(await t.queues.own(t.queue, t.nowMs(), 'B')).toEqual({
        answer: 'HELD',
        untilMs: START_MS + OWNER_LEASE_MS,
      });
      t.clock.ms += OWNER_LEASE_MS;
      const second = await t.own('B');
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect(await t.queues.next(first, t.nowMs(), 10)).toBe('FENCED');
      expect(await t.queues.next(second, t.nowMs(), 10)).toMatchObject({ cursor: '0-0' });
    });

    test('asking again is the same owner and the same epoch', async () => {
      const { t } = await start();
      expect(await t.own('A')).toEqual(await t.own('A'));
    });

    test('what the owner reads while there is work renews the lease; without work it is let go of', async () => {
      const { t } = await start();
      const [entry] = await t.ingest(['a']);
      const owned = await t.own('A');
      t.clock.ms += OWNER_LEASE_MS - 1;
      await t.queues.next(owned, t.nowMs(), 10);
      expect(await t.queues.own(t.queue, t.nowMs(), 'B')).toMatchObject({ untilMs: t.clock.ms + OWNER_LEASE_MS });
      await t.queues.next(owned, t.nowMs(), 10, { ...EMPTY, from: '0-0', to: entry?.id as string });
      expect(await t.queues.own(t.queue, t.nowMs(), 'B')).toMatchObject({ answer: 'OK' });
    });

    test('the epoch is above all before it, whatever the clock says', async () => {
      const { t, keys } = await start();
      const first = await t.own('A');
      t.clock.ms -= 1_000_000;
      await redis().call('hset', keys.meta, 'until', 0);
      expect((await t.own('B')).epoch).toBe(first.epoch + 1);
    });

    test('a queue that was made again is owned by nobody, and by no older epoch', async () => {
      const { t } = await start();
      const old = await t.own('A');
      t.clock.ms -= 1_000_000;
      await t.apply(t.routes({}, { gen: 'gen2' }));
      const owned = await t.own('B');
      expect(owned.gen).toBe('gen2');
      expect(owned.epoch).toBeGreaterThan(old.epoch);
      expect(await t.queues.next(old, t.nowMs(), 10)).toBe('FENCED');
    });

    test('missing is closed', async () => {
      const t = createTenant(redis());
      expect(await t.queues.own(t.queue, t.nowMs(), 'A')).toEqual({ answer: 'CLOSED' });
    });
  });

  describe('next', () => {
    test('reads from the persisted cursor and commits once', async () => {
      const { t } = await start();
      const [a, b, c] = await t.ingest(['a', 'b', 'c']);
      const owned = await t.own();
      const page = (await t.queues.next(owned, t.nowMs(), 2)) as QueuePage;
      expect(page).toEqual({
        cursor: '0-0',
        entries: [a, b],
        behind: new Map(),
        wake: [],
        oldestId: a?.id,
        retentionMs: 3_600_000,
      });
      const commit = { ...EMPTY, from: '0-0', to: b?.id as string };
      expect(await t.queues.next(owned, t.nowMs(), 2, commit)).toMatchObject({ cursor: b?.id, entries: [c] });
      expect(await t.queues.next(owned, t.nowMs(), 2, commit)).toBe('MOVED');
      expect(await t.queues.next(owned, t.nowMs(), 2)).toMatchObject({ cursor: b?.id, entries: [c] });
    });

    test('what is behind, to be woken, counted and noted is written with the cursor, or not at all', async () => {
      const { t, keys } = await start();
      const [a, b] = await t.ingest(['a', 'b']);
      const owned = await t.own();
      const commit = {
        from: '0-0',
        to: a?.id as string,
        behind: ['int_1/sub_1.x', 'int_2/sub_2.x'],
        wake: ['int_2/sub_2.x'],
        counters: new Map([
          ['in', 1],
          ['bytes', 4],
        ]),
        why: [{ ref: refOfStreamId(a?.id as string), ms: START_MS, text: 'int_3:a' }],
      };
      const page = await t.queues.next(owned, t.nowMs(), 10, commit);
      expect(page).toMatchObject({
        behind: new Map([
          ['int_1/sub_1.x', '0-0'],
          ['int_2/sub_2.x', '0-0'],
        ]),
        wake: ['int_2/sub_2.x'],
      });
      expect(await t.queues.next(owned, t.nowMs(), 10, { ...commit, behind: ['int_9/sub_9.x'] })).toBe('MOVED');
      // A position that is there stays: it is the older one.
      await t.queues.next(owned, t.nowMs(), 10, { ...commit, from: a?.id as string, to: b?.id as string });
      expect(await redis().readHash(keys.behind)).toEqual({ 'int_1/sub_1.x': '0-0', 'int_2/sub_2.x': '0-0' });
      expect(await redis().readHash(keys.traffic(Math.floor(START_MS / 3_600_000)))).toEqual({ in: '2', bytes: '8' });
      expect(await redis().call('pttl', keys.traffic(Math.floor(START_MS / 3_600_000)))).toBeGreaterThan(600_000_000);
      const why = keys.why(Math.floor(START_MS / BUCKET_MS));
      expect(await redis().readHash(why)).toEqual({ [refOfStreamId(a?.id as string)]: 'int_3:a,int_3:a' });
      // As long as ids are remembered, where the events are kept for less.
      expect(await redis().call('pttl', why)).toBeGreaterThan(86_400_000);
      expect(await redis().call('pttl', why)).toBeLessThan(3 * 86_400_000);
      // However often something is said of one event, it does not grow without end.
      const long = {
        counters: new Map(),
        why: commit.why.map(each => ({ ...each, text: 'x'.repeat(1_000) })),
        moved: [],
        woken: [],
      };
      for (let i = 0; i < 20; i++) await t.queues.catchUp(owned, t.nowMs(), 1, undefined, long);
      const length = Number(await redis().call('hstrlen', why, refOfStreamId(a?.id as string)));
      expect(length).toBeGreaterThan(7_000);
      expect(length).toBeLessThanOrEqual(8_192);
    });

    test('REGEN for a queue of another generation, CLOSED for one that is missing', async () => {
      const { t, keys } = await start();
      const owned = await t.own();
      expect(await t.queues.next({ ...owned, gen: 'gen0' }, t.nowMs(), 10)).toBe('REGEN');
      await redis().call('hdel', keys.meta, 'ready');
      expect(await t.queues.next(owned, t.nowMs(), 10)).toBe('CLOSED');
    });
  });

  describe('catch-up', () => {
    async function left() {
      const { t, keys } = await start();
      const entries = await t.ingest(['a', 'b', 'c']);
      const ids = entries.map(({ id }) => id) as [string, string, string];
      const owned = await t.own();
      const member = 'int_1/sub_1.x';
      const wake = [wakeEntry(member, '1')];
      await t.queues.next(owned, t.nowMs(), 10, { ...NOTHING, from: '0-0', to: ids[1], behind: [member], wake });
      return { t, keys, entries, ids, owned, member, wake };
    }

    test('reads up to the cursor, never beyond it', async () => {
      const { t, entries, ids, owned, member, wake } = await left();
      expect(await t.queues.catchUp(owned, t.nowMs(), 10, '0-0')).toEqual({
        cursor: ids[1],
        entries: entries.slice(0, 2),
        behind: new Map([[member, '0-0']]),
        wake,
      });
      expect(await t.queues.catchUp(owned, t.nowMs(), 10, ids[0])).toMatchObject({ entries: [entries[1]] });
      expect(await t.queues.catchUp(owned, t.nowMs(), 10, ids[1])).toMatchObject({ entries: [] });
      expect(await t.queues.catchUp(owned, t.nowMs(), 10, undefined)).toMatchObject({ entries: [] });
    });

    test('moves a position, and joins at the cursor', async () => {
      const { t, ids, owned, member, wake } = await left();
      const step = (from: string, to: string, woken: readonly string[]) =>
        t.queues.catchUp(owned, t.nowMs(), 10, undefined, { ...NOTHING, moved: [{ sub: member, from, to }], woken });
      expect(await step('0-0', ids[0], [])).toMatchObject({ behind: new Map([[member, ids[0]]]), wake });
      // Moved by somebody else: left alone.
      expect(await step('0-0', ids[1], [])).toMatchObject({ behind: new Map([[member, ids[0]]]) });
      expect(await step(ids[0], ids[1], wake)).toMatchObject({ behind: new Map(), wake: [] });
    });

    test('a waking that came meanwhile is kept', async () => {
      const { t, owned, member, wake } = await left();
      await t.control.wake(1, t.tenant, QUEUE, [{ integration: 'int_1', sub: 'sub_1', inc: 'x' }]);
      const page = await t.queues.catchUp(owned, t.nowMs(), 10, undefined, { ...NOTHING, moved: [], woken: wake });
      expect((page as QueuePage).wake).toEqual([expect.stringContaining(`${member}#`)]);
    });

    test('reasons are added to those of the main pass, counters too', async () => {
      const { t, keys, ids, owned, member } = await left();
      const why = (text: string) => [{ ref: refOfStreamId(ids[0]), ms: START_MS, text }];
      const counters = new Map([['routed', 2]]);
      for (const text of ['int_1:a', 'int_2:p']) {
        const result = { counters, why: why(text), moved: [{ sub: member, from: '0-0', to: '0-0' }], woken: [] };
        await t.queues.catchUp(owned, t.nowMs(), 10, undefined, result);
      }
      expect(await redis().readHash(keys.why(Math.floor(START_MS / BUCKET_MS)))).toEqual({
        [refOfStreamId(ids[0])]: 'int_1:a,int_2:p',
      });
      expect(await redis().readHash(keys.traffic(Math.floor(START_MS / 3_600_000)))).toEqual({ routed: '4' });
    });

    test('FENCED, REGEN and CLOSED write nothing', async () => {
      const { t, keys, ids, owned, member, wake } = await left();
      const result = { ...NOTHING, moved: [{ sub: member, from: '0-0', to: ids[1] }], woken: wake };
      const other = (change: object) => t.queues.catchUp({ ...owned, ...change }, t.nowMs(), 10, undefined, result);
      expect(await other({ epoch: owned.epoch - 1 })).toBe('FENCED');
      expect(await other({ gen: 'gen0' })).toBe('REGEN');
      await redis().call('hdel', keys.meta, 'ready');
      expect(await other({})).toBe('CLOSED');
      expect(await redis().readHash(keys.behind)).toEqual({ [member]: '0-0' });
    });
  });

  test('lookup: subscriptions of the queue, and the integrations of exactly each group key', async () => {
    const { t } = await start();
    await t.apply(t.routes({ x: {}, y: { sub: { route: 'paused' } }, z: { sub: { route: 'closed' } } }));
    await t.activate('x', 'a');
    await t.activate('y', 'a');
    await t.activate('y', 'ab');
    const found = await t.queues.lookup(t.queue, ['a', 'ab', 'b', 'constructor']);
    expect(found).toMatchObject({ payer: t.account, metered: true });
    expect(found?.subscriptions).toEqual(
      new Map([
        [t.nameOf('x'), 'sub_x.inc1'],
        [t.nameOf('y'), 'sub_y.inc1'],
      ]),
    );
    expect(found?.gates).toEqual(
      new Map([
        ['a', new Set([t.nameOf('x'), t.nameOf('y')])],
        ['ab', new Set([t.nameOf('y')])],
        ['b', new Set()],
        ['constructor', new Set()],
      ]),
    );
    expect(await t.queues.lookup({ ...t.queue, tenant: `ten_${randomUUID()}` }, ['a'])).toBeUndefined();
  });

  test('lookup: the same where many subscribe', async () => {
    const { t } = await start();
    const shorts = Array.from({ length: 12 }, (_, i) => `s${i}`);
    await t.apply(t.routes(Object.fromEntries(shorts.map(short => [short, {}]))));
    for (const short of shorts) await t.activate(short, 'a');
    for (const short of ['s3', 's11']) await t.activate(short, 'ab');
    const found = await t.queues.lookup(t.queue, ['ab', 'a', 'b']);
    expect(found?.gates).toEqual(
      new Map([
        ['ab', new Set(['s3', 's11'].map(t.nameOf))],
        ['a', new Set(shorts.map(t.nameOf))],
        ['b', new Set()],
      ]),
    );
  });

  test('trim removes what is before the cut, gives its bytes back, and is fenced', async () => {
    const { t, keys } = await start({ maxBytes: 100_000_000 });
    for (let i = 0; i < 20; i++) await t.ingest(Array.from({ length: 60 }, () => 'k'));
    t.clock.ms += 1_000;
    const [kept] = await t.ingest(['k'], 'longer body');
    const owned = await t.own();
    const cut = `${START_MS + 1}-0`;
    expect(await t.queues.trim({ ...owned, epoch: owned.epoch - 1 }, t.nowMs(), cut, [])).toBe('FENCED');
    expect(await t.queues.trim(owned, t.nowMs(), cut, [])).toEqual({ more: true, neverRouted: 0 });
    expect(await t.queues.trim(owned, t.nowMs(), cut, [])).toEqual({ more: false, neverRouted: 0 });
    expect(await t.queues.next(owned, t.nowMs(), 10)).toMatchObject({ entries: [kept], oldestId: kept?.id });
    expect(await redis().call('xlen', keys.bodies)).toBe(1);
    const meta = JSON.stringify({ i: randomUUID(), s: '/events/x/orders' });
    expect(await redis().call('hget', keys.meta, 'bytes')).toBe(String('k'.length + meta.length + 11 + 400));
  });

  describe('what retention removes before it was routed', () => {
    const a = 'int_a/sub_a.1';
    const b = 'int_b/sub_b.1';
    const c = 'int_c/sub_c.1';
    const HOUR = Math.floor(START_MS / 3_600_000);

    test('is counted for each subscription that had not got it, and their positions move past it', async () => {
      const { t, keys } = await start();
      const ids = (await t.ingest(['k', 'k', 'k', 'k', 'k', 'k'])).map(({ id }) => id) as string[];
      t.clock.ms += 1_000;
      const [young] = await t.ingest(['k']);
      const owned = await t.own();
      const commit = (from: string, to: string, behind: string[]) =>
        t.queues.next(owned, t.nowMs(), 10, { ...EMPTY, from, to, behind });
      await commit('0-0', ids[1] as string, [a]);
      await commit(ids[1] as string, ids[3] as string, [b]);
      const trimmed = await t.queues.trim(owned, t.nowMs(), `${START_MS + 1}-0`, [a, b, c]);
      // All six of `a`, four of `b`, and the two behind the cursor of `c`.
      expect(trimmed).toEqual({ more: false, neverRouted: 12 });
      expect(await redis().readHash(keys.expired)).toEqual({ [a]: '6', [b]: '4', [c]: '2' });
      const last = ids[5] as string;
      expect(await t.queues.next(owned, t.nowMs(), 10)).toMatchObject({
        cursor: last,
        entries: [young],
        behind: new Map([
          [a, last],
          [b, last],
        ]),
      });
      expect(await redis().readHash(keys.traffic(HOUR))).toEqual({
        in: '2',
        notRouted: '2',
        bytes: '8',
        'r:expired': '12',
      });
    });

    test('counts each once, over any number of calls', async () => {
      const { t, keys } = await start({ maxBytes: 100_000_000 });
      for (let i = 0; i < 21; i++) await t.ingest(Array.from({ length: 60 }, () => 'k'));
      const owned = await t.own();
      const trim = () => t.queues.trim(owned, t.nowMs(), `${START_MS + 1}-0`, [a]);
      expect(await trim()).toEqual({ more: true, neverRouted: 1_000 });
      expect(await trim()).toEqual({ more: false, neverRouted: 260 });
      expect(await trim()).toEqual({ more: false, neverRouted: 0 });
      expect(await redis().readHash(keys.expired)).toEqual({ [a]: '1260' });
    });

    test('what was routed does not count', async () => {
      const { t, keys } = await start();
      const [first, second] = await t.ingest(['k', 'k']);
      const owned = await t.own();
      await t.queues.next(owned, t.nowMs(), 10, { ...EMPTY, from: '0-0', to: first?.id as string });
      await t.queues.next(owned, t.nowMs(), 10, {
        ...EMPTY,
        from: first?.id as string,
        to: second?.id as string,
        behind: [b],
      });
      expect(await t.queues.trim(owned, t.nowMs(), second?.id as string, [a, b])).toEqual({
        more: false,
        neverRouted: 0,
      });
      expect(await redis().readHash(keys.expired)).toEqual({});
      expect(await redis().readHash(keys.behind)).toEqual({ [b]: first?.id });
    });
  });

  test('a queue that is given back is owned by the next who asks; ingress relies on its hint meanwhile', async () => {
    const { t, keys } = await start();
    await t.ingest(['k']);
    const first = await t.own('A');
    await t.queues.release({ ...first, epoch: first.epoch - 1 });
    expect(await t.queues.own(t.queue, t.nowMs(), 'B')).toMatchObject({ answer: 'HELD' });
    await t.queues.release(first);
    expect(await redis().call('hget', keys.meta, 'until')).toBe(String(START_MS + OWNER_LEASE_MS));
    const second = await t.own('B');
    expect(second.epoch).toBeGreaterThan(first.epoch);
    expect(await t.queues.next(first, t.nowMs(), 10)).toBe('FENCED');
    await t.queues.release(first);
    expect(await t.queues.own(t.queue, t.nowMs(), 'C')).toMatchObject({ answer: 'HELD' });
  });

  test('a queue that was read and is given back is asleep, unless there is something to read by now', async () => {
    const { t, keys } = await start();
    const owned = await t.own();
    const [entry] = await t.ingest(['k']);
    expect(await t.queues.release(owned, true)).toBe(false);
    expect(await t.queues.own(t.queue, t.nowMs(), 'B')).toMatchObject({ answer: 'HELD' });
    const wake = ['int_1/sub_1.x'];
    await t.queues.next(owned, t.nowMs(), 10, { ...EMPTY, from: '0-0', to: entry?.id as string, behind: wake, wake });
    expect(await redis().call('hget', keys.meta, 'until')).not.toBe('0');
    expect(await t.queues.release(owned, true)).toBe(true);
    expect(await redis().call('hget', keys.meta, 'until')).toBe('0');
    expect(await t.queues.own(t.queue, t.nowMs(), 'B')).toMatchObject({ answer: 'OK' });
  });
});
