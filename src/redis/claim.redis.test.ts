import { describe, expect, test } from 'vitest';
import { refOfStreamId } from '../core/ids/refs.ts';
import type { ClaimAnswer, Completion } from './inbox-store.ts';
import { inboxKeys, integrationKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, type IntegrationShort, items, START_MS } from './testing/tenant.ts';

const LEASE_MS = 25_000;

onEachRedis(redis => {
  async function start(integration: IntegrationShort = {}, groupKeys = ['a', 'b', 'c']) {
    const t = createTenant(redis());
    await t.apply(t.routes({ x: integration }));
    for (const groupKey of groupKeys) await t.activate('x', groupKey);
    const inbox = t.inboxOf('x');
    let turn = 0;
    return {
      t,
      inbox,
      x: inboxKeys(inbox.integration, inbox.sub, inbox.inc),
      subscription: () => redis().readHash(integrationKeys(inbox.integration).sub(inbox.sub)),
      /** Routes one event a group key, 1 ms apart. */
      route: async (...keys: string[]) => {
        const entries = keys.map(groupKey => ({ id: `${START_MS}-${turn++}`, groupKey }));
        await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', 'acc_payer', items(entries));
        return entries.map(({ id }) => refOfStreamId(id));
      },
      claim: (room = 64, token = 't1') => t.inboxes.claim(inbox, t.nowMs(), room, token, LEASE_MS),
      complete: async (...done: Completion[]) => (await t.inboxes.complete(inbox, t.nowMs(), done)).answers,
    };
  }
  const lanes = (answer: ClaimAnswer) =>
    answer.answer === 'OK' ? answer.claims.map(({ lane }) => lane) : answer.answer;
  const done = (lane: string, ref: string, outcome: Completion['outcome'], more = {}): Completion => ({
    lane,
    ref,
    token: 't1',
    outcome,
    record: `${outcome} 1 1 x`,
    ...more,
  });

  describe('claim', () => {
    test('the head of each due lane, one at a time, with the time of the next', async () => {
      const { t, route, claim, complete } = await start();
      const [a1, b1, a2] = (await route('a', 'b', 'a')) as [string, string, string];
      const first = await claim();
      expect(first).toEqual({
        answer: 'OK',
        cfgv: expect.any(String),
        nextMs: START_MS + LEASE_MS,
        more: false,
        claims: [
          { lane: 'a', ref: a1, attempts: 0, lapses: 0 },
          { lane: 'b', ref: b1, attempts: 0, lapses: 0 },
        ],
      });
      expect(lanes(await claim())).toEqual([]);
      expect(await complete(done('a', a1, 'delivered'))).toEqual(['OK']);
      expect(await claim()).toMatchObject({ claims: [{ lane: 'a', ref: a2 }] });
      expect(await complete(done('a', a2, 'delivered'), done('b', b1, 'delivered'))).toEqual(['OK', 'OK']);
      expect(await claim()).toMatchObject({ claims: [], nextMs: undefined });
      expect(t.nowMs()).toBe(START_MS);
    });

    test('in the step that ends what was claimed before', async () => {
      const { t, inbox, route, claim, x } = await start();
      const [a1, b1, a2] = (await route('a', 'b', 'a', 'c')) as [string, string, string, string];
      await claim(2);
      const { claimed, ...ended } = await t.inboxes.exchange(
        inbox,
        t.nowMs(),
        [done('a', a1, 'delivered'), done('b', b1, 'delivered'), done('b', b1, 'dead')],
        { room: 2, token: 't2', leaseMs: LEASE_MS },
      );
      const news = { before: { trouble: '- 0', backlog: '1' }, now: { trouble: '- 0', backlog: '0' } };
      expect(ended).toEqual({ answers: ['OK', 'OK', 'GONE'], nextMs: START_MS + LEASE_MS, news });
      expect(claimed).toMatchObject({ answer: 'OK', more: false, claims: [{ lane: 'a', ref: a2 }, { lane: 'c' }] });
      expect(await redis().call('zrange', x.due, 0, -1)).toEqual(['a', 'c']);
      expect(await redis().call('hget', x.claims, 'a')).toBe(`t2|${a2}`);
    });

    test('what came while the head was under way is claimed after it', async () => {
      const { t, inbox, route, claim } = await start();
      const [a1] = (await route('a')) as [string];
      await claim();
      const [a2] = (await route('a')) as [string];
      const claiming = { room: 2, token: 't2', leaseMs: LEASE_MS };
      const answer = await t.inboxes.exchange(inbox, t.nowMs(), [done('a', a1, 'delivered')], claiming);
      expect(answer.claimed).toMatchObject({ claims: [{ lane: 'a', ref: a2 }] });
    });

    test('what it ends is ended also when nothing may be claimed', async () => {
      const { t, inbox, route, claim, subscription } = await start();
      const [a1] = (await route('a', 'a')) as [string, string];
      await claim();
      await t.apply(t.routes({ x: { sub: { send: 'held' } } }));
      const claiming = { room: 2, token: 't2', leaseMs: LEASE_MS };
      const answer = await t.inboxes.exchange(inbox, t.nowMs(), [done('a', a1, 'delivered')], claiming);
      expect(answer).toEqual({ answers: ['OK'], nextMs: START_MS, claimed: { answer: 'PAUSED' } });
      expect((await subscription())['n:delivered']).toBe('1');
    });

    test('a lane that lost what was behind its head is dropped when its turn comes', async () => {
      const { route, claim, complete, x } = await start();
      const [a1, a2] = (await route('a', 'a')) as [string, string];
      await claim();
      expect(await redis().call('hget', x.claims, 'a')).toBe(`+t1|${a1}`);
      await redis().call('zrem', x.pending, `a\0${a2}`);
      expect(await complete(done('a', a1, 'delivered'))).toEqual(['OK']);
      expect(await claim()).toMatchObject({ claims: [], nextMs: undefined });
      expect(await redis().call('exists', x.due, x.claims, x.pending)).toBe(0);
    });

    test('no more than there is room for; the rest is due at once', async () => {
      const { route, claim } = await start();
      await route('a', 'b', 'c');
      expect(await claim(2)).toMatchObject({ claims: [{ lane: 'a' }, { lane: 'b' }], nextMs: START_MS });
      expect(lanes(await claim(2))).toEqual(['c']);
    });

    test('no more than the cap, whoever holds them', async () => {
      const { route, claim, complete } = await start({ sub: { cap: 2 } });
      const [a] = await route('a', 'b', 'c');
      expect(lanes(await claim(64, 't1'))).toEqual(['a', 'b']);
      expect(await claim(64, 't2')).toMatchObject({ claims: [], nextMs: START_MS });
      await complete(done('a', a as string, 'delivered'));
      expect(lanes(await claim(64, 't2'))).toEqual(['c']);
    });

    test('a lapsed claim is claimed anew and counted, attempts are not', async () => {
      const { t, route, claim, complete } = await start();
      const [a] = (await route('a')) as [string];
      await claim();
      t.clock.ms += LEASE_MS - 1;
      expect(lanes(await claim(64, 't2'))).toEqual([]);
      t.clock.ms += 1;
      expect(await claim(64, 't2')).toMatchObject({ claims: [{ ref: a, attempts: 0, lapses: 1 }] });
      expect(await complete(done('a', a, 'failed', { dueMs: 1 }))).toEqual(['STALE']);
      expect(await complete(done('a', a, 'failed', { token: 't2', dueMs: t.nowMs() }))).toEqual(['OK']);
      expect(await claim(64, 't3')).toMatchObject({ claims: [{ ref: a, attempts: 1, lapses: 1 }] });
    });

    test('claims of a dead dispatcher that fill the cap are found behind older lanes that wait', async () => {
      const keys = Array.from({ length: 80 }, (_, i) => `k${i}`);
      const { t, route, claim } = await start({ sub: { cap: 2 } }, keys);
      await route('k0', 'k1');
      await claim();
      t.clock.ms += 1;
      await route(...keys.slice(2));
      expect(lanes(await claim(64, 't2'))).toEqual([]);
      t.clock.ms += LEASE_MS;
      expect(lanes(await claim(64, 't2'))).toEqual(['k0', 'k1']);
    });

    test('at most 64 lanes are looked at, then it asks to be called again', async () => {
      const keys = Array.from({ length: 70 }, (_, i) => `k${i}`);
      const { route, claim } = await start({ sub: { cap: 1000 } }, keys);
      await route(...keys);
      expect(await claim(1000)).toMatchObject({ more: true, claims: { length: 64 } });
      expect(await claim(1000)).toMatchObject({ more: false, claims: { length: 6 } });
    });

    test('without order all events of a key are claimed at once', async () => {
      const { route, claim, complete, x } = await start({ sub: { unordered: true } });
      const refs = await route('a', 'a', 'a');
      const answer = await claim();
      expect(lanes(answer)).toEqual(refs.map(ref => `a\0${ref}`));
      expect(await complete(...refs.map(ref => done(`a\0${ref}`, ref, 'delivered')))).toEqual(['OK', 'OK', 'OK']);
      expect(await redis().call('exists', x.due, x.claims, x.pending, x.tries)).toBe(0);
    });

    test.each([
      ['PAUSED', { sub: { send: 'held' } }],
      ['PAUSED', { state: 'closed' }],
      ['PAUSED', { state: 'pending' }],
    ] as const)('%s claims nothing (%j)', async (answer, integration) => {
      const { t, route, claim } = await start();
      await route('a');
      await t.apply(t.routes({ x: integration }));
      expect(await claim()).toEqual({ answer });
      await t.apply(t.routes({ x: {} }));
      expect(lanes(await claim())).toEqual(['a']);
    });

    test('GONE without a subscription, CLOSED without an integration', async () => {
      const { inbox, route, claim } = await start();
      await route('a');
      await redis().call('del', integrationKeys(inbox.integration).sub(inbox.sub));
      expect(await claim()).toEqual({ answer: 'GONE' });
      await redis().call('hdel', integrationKeys(inbox.integration).meta, 'ready');
      expect(await claim()).toEqual({ answer: 'CLOSED' });
    });
  });

  describe('a lane whose activation is gone', () => {
    test('is parked, and un-parked by the activation', async () => {
      const { t, route, claim } = await start();
      await route('a', 'b');
      await t.deactivate('x', 'a');
      expect(await claim()).toMatchObject({ claims: [{ lane: 'b' }], nextMs: START_MS + LEASE_MS });
      t.clock.ms += 10;
      await t.activate('x', 'a');
      expect(lanes(await claim())).toEqual(['a']);
    });

    test('is not un-parked before its retry is due', async () => {
      const { t, route, claim, complete } = await start();
      const [a] = (await route('a')) as [string];
      await claim();
      await complete(done('a', a, 'failed', { dueMs: START_MS + 60_000 }));
      await t.deactivate('x', 'a');
      t.clock.ms += 30_000;
      await claim();
      await t.activate('x', 'a');
      expect(await claim()).toMatchObject({ claims: [], nextMs: START_MS + 60_000 });
      t.clock.ms = START_MS + 60_000;
      expect(await claim()).toMatchObject({ claims: [{ ref: a, attempts: 1 }] });
    });

    test('a retry that is parked when it is due waits for the activation, and routing does not un-park it early', async () => {
      const { t, route, claim, complete } = await start();
      const [a] = (await route('a')) as [string];
      await claim();
      await complete(done('a', a, 'failed', { dueMs: START_MS + 60_000 }));
      await t.deactivate('x', 'a');
      t.clock.ms = START_MS + 60_000;
      expect(await claim()).toMatchObject({ claims: [], nextMs: undefined });
      await t.activate('x', 'a');
      await route('a');
      expect(await claim()).toMatchObject({ claims: [{ ref: a, attempts: 1 }] });
    });

    test('gives its claim back to the cap', async () => {
      const { t, route, claim } = await start({ sub: { cap: 1 } });
      await route('a', 'b');
      expect(lanes(await claim())).toEqual(['a']);
      await t.deactivate('x', 'a');
      t.clock.ms += LEASE_MS;
      await claim(64, 't2');
      expect(lanes(await claim(64, 't2'))).toEqual(['b']);
    });

    test('an attempt under way is completed; the lane is parked after it', async () => {
      const { t, route, claim, complete } = await start();
      const [a, a2] = (await route('a', 'a')) as [string, string];
      await claim();
      await t.deactivate('x', 'a');
      expect(await complete(done('a', a, 'delivered'))).toEqual(['OK']);
      expect(lanes(await claim())).toEqual([]);
      await t.activate('x', 'a');
      expect(await claim()).toMatchObject({ claims: [{ ref: a2 }] });
    });

    test('without order it is looked at again in a minute, or when it opens', async () => {
      const { t, route, claim, complete } = await start({ sub: { unordered: true } });
      const [a, b] = (await route('a', 'a')) as [string, string];
      await claim();
      await complete(
        done(`a\0${a}`, a, 'failed', { dueMs: START_MS + 1 }),
        done(`a\0${b}`, b, 'failed', { dueMs: START_MS + 500_000 }),
      );
      await t.deactivate('x', 'a');
      t.clock.ms += 1;
      expect(await claim()).toMatchObject({ claims: [], nextMs: START_MS + 1 + 60_000 });
      t.clock.ms += 1;
      await t.activate('x', 'a');
      expect(await claim()).toMatchObject({ claims: [{ ref: a, attempts: 1 }], nextMs: START_MS + 2 + LEASE_MS });
    });
  });
});
