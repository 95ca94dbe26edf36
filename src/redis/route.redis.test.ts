import { describe, expect, test } from 'vitest';
import { inboxKeys, integrationKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, type IntegrationShort, items, START_MS } from './testing/tenant.ts';

const EPOCH = START_MS;

onEachRedis(redis => {
  async function start(integration: IntegrationShort = {}) {
    const t = createTenant(redis());
    await t.apply(t.routes({ x: integration }));
    await t.activate('x', 'k');
    const charge = (entries: Parameters<typeof items>[0], epoch = EPOCH, gen = 'gen1') =>
      t.inboxes.route(t.inboxOf('x'), t.nowMs(), epoch, gen, t.account, items(entries));
    /** The same without what the ledger says. */
    const route = async (...args: Parameters<typeof charge>) => {
      const reply = await charge(...args);
      return reply.answer === 'OK' ? { answer: reply.answer, flags: reply.flags } : reply;
    };
    const x = inboxKeys(t.nameOf('x'), 'sub_x', 'inc1');
    const inbox = () => redis().call('zrange', x.pending, 0, -1);
    const subscription = () => redis().readHash(integrationKeys(t.nameOf('x')).sub('sub_x'));
    return { t, charge, route, inbox, subscription, x };
  }
  const at = (ms: number, groupKey = 'k', seq = 0) => ({ id: `${ms}-${seq}`, groupKey });

  test('appends each reference once: what it has already is d', async () => {
    const { route, inbox, subscription, x } = await start();
    expect(await route([at(START_MS), at(START_MS, 'k', 9), at(START_MS, 'k', 10)])).toEqual({
      answer: 'OK',
      flags: 'rrr',
    });
    expect(await route([at(START_MS, 'k', 9), at(START_MS, 'k', 10), at(START_MS, 'k', 11)])).toEqual({
      answer: 'OK',
      flags: 'ddr',
    });
    expect(await inbox()).toHaveLength(4);
    expect(await redis().call('xlen', x.log)).toBe(4);
    expect((await subscription())['n:routed']).toBe('4');
  });

  test('a key that is not active is a, also when the batch is repeated', async () => {
    const { route, inbox } = await start();
    const batch = [at(START_MS, 'other'), at(START_MS + 1, 'k'), at(START_MS + 2, 'constructor')];
    expect(await route(batch)).toEqual({ answer: 'OK', flags: 'ara' });
    expect(await route(batch)).toEqual({ answer: 'OK', flags: 'ada' });
    expect(await inbox()).toHaveLength(1);
  });

  test('what was refused stays refused when its batch is repeated after its key was opened', async () => {
    const { t, route, inbox } = await start();
    const batch = [at(START_MS, 'other'), at(START_MS + 1, 'k')];
    expect(await route(batch)).toEqual({ answer: 'OK', flags: 'ar' });
    await t.activate('x', 'other');
    expect(await route(batch)).toEqual({ answer: 'OK', flags: 'ad' });
    expect(await inbox()).toHaveLength(1);
    expect(await route([at(START_MS + 2, 'other')])).toEqual({ answer: 'OK', flags: 'r' });
  });

  test('without order each event is a lane of its own', async () => {
    const { t, route, x } = await start({ sub: { unordered: true } });
    await route([at(START_MS), at(START_MS + 1)]);
    expect(await redis().call('zcard', x.due)).toBe(2);
    const ordered = await start();
    await ordered.route([at(START_MS), at(START_MS + 1)]);
    expect(await redis().call('zrange', ordered.x.due, 0, -1, 'WITHSCORES')).toEqual(['k', String(t.nowMs())]);
  });

  test('many lanes are kept so that one is found without looking at all', async () => {
    const { t, route, x } = await start();
    const keys = Array.from({ length: 40 }, (_, i) => `k${String(i).padStart(2, '0')}`);
    for (const groupKey of keys) await t.activate('x', groupKey);
    await route(keys.slice(0, 20).map((groupKey, i) => at(START_MS, groupKey, i)));
    expect(await redis().call('object', 'encoding', x.due)).toBe('listpack');
    await route(keys.map((groupKey, i) => at(START_MS, groupKey, 20 + i)));
    expect(await redis().call('object', 'encoding', x.due)).toBe('skiplist');
    expect(await redis().call('zrange', x.due, 0, -1)).toEqual(keys);
  });

  describe('refusals', () => {
    test.each([
      ['PENDING', { state: 'pending' }],
      ['REVOKED', { state: 'closed' }],
      ['PAUSED', { sub: { route: 'paused' } }],
      ['GONE', { sub: { route: 'closed' } }],
    ] as const)('%s', async (answer, integration) => {
      const { route, inbox } = await start(integration);
      expect(await route([at(START_MS)])).toEqual({ answer });
      expect(await inbox()).toEqual([]);
    });

    test('a pending integration says so, also while it is blocked', async () => {
      const { route } = await start({ state: 'pending', sub: { route: 'paused' } });
      expect(await route([at(START_MS)])).toEqual({ answer: 'PENDING' });
    });

    test('REGEN for a queue of another generation', async () => {
      const { route, inbox } = await start();
      expect(await route([at(START_MS)], EPOCH, 'gen0')).toEqual({ answer: 'REGEN' });
      expect(await inbox()).toEqual([]);
    });

    test('FENCED for an owner before the last one', async () => {
      const { route, inbox } = await start();
      expect(await route([at(START_MS, 'other')], EPOCH + 1)).toEqual({ answer: 'OK', flags: 'a' });
      expect(await route([at(START_MS)], EPOCH)).toEqual({ answer: 'FENCED' });
      expect(await inbox()).toEqual([]);
      expect(await route([at(START_MS)], EPOCH + 1)).toEqual({ answer: 'OK', flags: 'r' });
    });

    test('GONE for a subscription that is not there, CLOSED for an integration that is not there', async () => {
      const { t, route } = await start();
      await redis().call('del', integrationKeys(t.nameOf('x')).sub('sub_x'));
      expect(await route([at(START_MS)])).toEqual({ answer: 'GONE' });
      await redis().call('hdel', integrationKeys(t.nameOf('x')).meta, 'ready');
      expect(await route([at(START_MS)])).toEqual({ answer: 'CLOSED' });
    });
  });

  describe('since: an entry older than 10 s must have been open when it was accepted', () => {
    const HOUR = 3_600_000;
    const cases: [string, { activated?: number; accepted?: number; admitted?: number; age: number }, string][] = [
      ['open when accepted', { activated: -HOUR, age: 1_800_000 }, 'r'],
      ['activated after it was accepted', { activated: -1_000_000, age: 1_800_000 }, 'a'],
      ['activated at the very ms', { activated: -HOUR, age: HOUR }, 'r'],
      ['2 s of grace for clocks', { activated: -HOUR, age: HOUR + 2_000 }, 'r'],
      ['and not more', { activated: -HOUR, age: HOUR + 2_001 }, 'a'],
      ['young entries pass if the key is active now', { activated: 0, age: 10_000 }, 'r'],
      ['older ones do not', { activated: 0, age: 10_001 }, 'a'],
      ['integration accepted later', { activated: -2 * HOUR, accepted: -1_000_000, age: 1_800_000 }, 'a'],
      [
        'subscription admitted later, or skipped to now',
        { activated: -2 * HOUR, admitted: -1_000_000, age: 1_800_000 },
        's',
      ],
      ['not open when accepted is said first', { activated: -1_000_000, admitted: -1_000_000, age: 1_800_000 }, 'a'],
      ['all of them earlier', { activated: -2 * HOUR, accepted: -2 * HOUR, admitted: -2 * HOUR, age: HOUR }, 'r'],
    ];
    test.each(cases)('%s', async (_name, { activated, accepted, admitted, age }, flag) => {
      const old = -10 * HOUR;
      const { t, route } = await start({
        sinceMs: START_MS + (accepted ?? old),
        sub: { sinceMs: START_MS + (admitted ?? old) },
      });
      await t.activate('x', 'g', START_MS + (activated ?? old));
      expect(await route([at(START_MS - age, 'g')])).toEqual({ answer: 'OK', flags: flag });
    });

    test('activating again keeps since; deactivating in between does not', async () => {
      const { t, route } = await start({ sinceMs: 0, sub: { sinceMs: 0 } });
      await t.activate('x', 'g', START_MS - HOUR);
      await t.activate('x', 'g', START_MS);
      expect(await route([at(START_MS - 60_000, 'g')])).toEqual({ answer: 'OK', flags: 'r' });
      await t.deactivate('x', 'g');
      await t.activate('x', 'g', START_MS);
      expect(await route([at(START_MS - 50_000, 'g')])).toEqual({ answer: 'OK', flags: 'a' });
    });
  });

  describe('the ledger', () => {
    const DAY_MS = 86_400_000;
    const ledgerOf = (t: Awaited<ReturnType<typeof start>>['t']) =>
      redis().readHash(integrationKeys(t.nameOf('x')).ledger);

    test('is charged for what is appended now, and answers the total also to a repetition', async () => {
      const { t, charge } = await start();
      const items = [at(START_MS), at(START_MS, 'other', 1), at(START_MS, 'k', 2)];
      const first = await charge(items);
      expect(first).toMatchObject({ flags: 'rar', ledger: { total: 2 } });
      expect(await charge(items)).toEqual({ ...first, flags: 'dad' });
      expect(await charge([...items, at(START_MS, 'k', 3)])).toMatchObject({ flags: 'dadr', ledger: { total: 3 } });
      const day = Math.floor(START_MS / DAY_MS);
      expect(await ledgerOf(t)).toMatchObject({ [t.account]: '3', [`${t.account}:${day}`]: '3' });
    });

    test('says nothing while nothing was charged, and refusals charge nothing', async () => {
      const { t, charge } = await start({ sub: { route: 'paused' } });
      expect(await charge([at(START_MS)])).toEqual({ answer: 'PAUSED' });
      expect(await redis().call('exists', integrationKeys(t.nameOf('x')).ledger)).toBe(0);
      const other = await start();
      expect(await other.charge([at(START_MS, 'other')])).toEqual({ answer: 'OK', flags: 'a', ledger: undefined });
    });

    test('one that was lost begins anew under another generation', async () => {
      const { t, charge } = await start();
      const first = await charge([at(START_MS)]);
      await redis().call('del', integrationKeys(t.nameOf('x')).ledger);
      t.clock.ms += 1;
      const second = await charge([at(START_MS, 'k', 1)]);
      const genOf = (reply: typeof first) => (reply.answer === 'OK' ? reply.ledger?.gen : undefined);
      expect(second).toMatchObject({ ledger: { total: 1 } });
      expect(genOf(second)).not.toBe(genOf(first));
    });

    test('keeps 35 days, and the total for ever', async () => {
      const { t, charge } = await start();
      for (let day = 0; day < 40; day++) {
        await charge([at(t.clock.ms)]);
        t.clock.ms += DAY_MS;
      }
      const fields = Object.keys(await ledgerOf(t)).filter(field => field.includes(':'));
      const last = Math.floor(START_MS / DAY_MS) + 39;
      expect(fields.sort()).toEqual(Array.from({ length: 35 }, (_, i) => `${t.account}:${last - 34 + i}`));
      expect((await ledgerOf(t))[t.account]).toBe('40');
    });

    test('one event published to it fifty times at once costs once', async () => {
      const { charge } = await start();
      const replies = await Promise.all(Array.from({ length: 50 }, () => charge([at(START_MS)])));
      expect(replies.map(reply => (reply.answer === 'OK' ? reply.flags : '')).sort()).toEqual([
        ...Array.from({ length: 49 }, () => 'd'),
        'r',
      ]);
      expect(replies.every(reply => reply.answer === 'OK' && reply.ledger?.total === 1)).toBe(true);
    });
  });

  test('one call takes 200 references, and one inbox holds no other', async () => {
    const { t, route, inbox } = await start();
    await t.apply(t.routes({ x: {}, y: {} }));
    const batch = Array.from({ length: 200 }, (_, i) => at(START_MS, 'k', i));
    expect(await route(batch)).toEqual({ answer: 'OK', flags: 'r'.repeat(200) });
    expect(await inbox()).toHaveLength(200);
    expect(await redis().call('exists', inboxKeys(t.nameOf('y'), 'sub_y', 'inc1').pending)).toBe(0);
  });
});
