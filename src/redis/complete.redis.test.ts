import { describe, expect, test } from 'vitest';
import { refOfStreamId } from '../core/ids/refs.ts';
import { type Completion, RECORD_TTL_MS } from './inbox-store.ts';
import { BUCKET_MS, inboxKeys, integrationKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, type IntegrationShort, items, START_MS } from './testing/tenant.ts';

const LEASE_MS = 25_000;
const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  async function start(integration: IntegrationShort = {}) {
    const t = createTenant(redis());
    await t.apply(t.routes({ x: { sinceMs: 0, ...integration, sub: { sinceMs: 0, ...integration.sub } } }));
    for (const groupKey of ['a', 'b']) await t.activate('x', groupKey, 0);
    const inbox = t.inboxOf('x');
    const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
    return {
      t,
      inbox,
      x,
      subscription: () => redis().readHash(integrationKeys(inbox.integration).sub(inbox.sub)),
      record: (ref: string, ms: number) => redis().call('hget', x.records(Math.floor(ms / BUCKET_MS)), ref),
      route: async (...ids: [id: string, groupKey: string][]) => {
        const entries = ids.map(([id, groupKey]) => ({ id, groupKey }));
        await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', 'acc_payer', items(entries));
        return entries.map(({ id }) => refOfStreamId(id));
      },
      claim: (token = 't1') => t.inboxes.claim(inbox, t.nowMs(), 64, token, LEASE_MS),
      complete: async (...done: Completion[]) => (await t.inboxes.complete(inbox, t.nowMs(), done)).answers,
    };
  }
  const done = (lane: string, ref: string, outcome: Completion['outcome'], more = {}): Completion => ({
    lane,
    ref,
    token: 't1',
    outcome,
    record: `${outcome} 1 1 x`,
    ...more,
  });

  describe('complete', () => {
    test.each(['delivered', 'dead', 'expired'] as const)('%s is final, recorded and counted', async outcome => {
      const { x, subscription, record, route, claim, complete } = await start();
      const [a, a2] = (await route([`${START_MS}-0`, 'a'], [`${START_MS}-1`, 'a'])) as [string, string];
      await claim();
      expect(await complete(done('a', a, outcome))).toEqual(['OK']);
      expect(await record(a, START_MS)).toBe(`${outcome} 1 1 x`);
      const ttl = (await redis().call('pttl', x.records(Math.floor(START_MS / BUCKET_MS)))) as number;
      expect(ttl).toBeGreaterThan(RECORD_TTL_MS - 60_000);
      expect((await subscription())[`n:${outcome}`]).toBe('1');
      expect(await redis().call('zscore', x.final, a)).toBe(outcome === 'delivered' ? null : '0');
      expect(await complete(done('a', a, outcome))).toEqual(['GONE']);
      expect((await subscription())[`n:${outcome}`]).toBe('1');
      expect(await claim()).toMatchObject({ claims: [{ ref: a2 }] });
    });

    test('failed waits until it is due, and holds the lane: nothing overtakes it', async () => {
      const { t, route, claim, complete } = await start();
      const [a] = (await route([`${START_MS}-0`, 'a'], [`${START_MS}-1`, 'a'])) as [string];
      await claim();
      expect(await complete(done('a', a, 'failed', { dueMs: START_MS + 5_000 }))).toEqual(['OK']);
      expect(await claim()).toMatchObject({ claims: [], nextMs: START_MS + 5_000 });
      t.clock.ms += 5_000;
      expect(await claim()).toMatchObject({ claims: [{ ref: a, attempts: 1, lapses: 0 }] });
    });

    test('released is due at once, and no attempt', async () => {
      const { route, claim, complete } = await start();
      const [a] = (await route([`${START_MS}-0`, 'a'])) as [string];
      await claim();
      expect(await complete(done('a', a, 'released'))).toEqual(['OK']);
      expect(await claim('t2')).toMatchObject({ claims: [{ ref: a, attempts: 0, lapses: 0 }] });
    });

    test('only the claim that holds the lane says what failed', async () => {
      const { t, route, claim, complete } = await start();
      const [a] = (await route([`${START_MS}-0`, 'a'])) as [string];
      await claim('t1');
      t.clock.ms += LEASE_MS;
      await claim('t2');
      for (const outcome of ['failed', 'released', 'dead', 'expired'] as const) {
        expect(await complete(done('a', a, outcome, { dueMs: 1 }))).toEqual(['STALE']);
      }
      expect(await complete(done('a', a, 'dead', { token: 't2' }))).toEqual(['OK']);
    });

    test('delivered is taken from any claim while the reference is open: the partner has it', async () => {
      const { t, route, claim, complete } = await start();
      const [a, a2] = (await route([`${START_MS}-0`, 'a'], [`${START_MS}-1`, 'a'])) as [string, string];
      await claim('t1');
      t.clock.ms += LEASE_MS;
      await claim('t2');
      expect(await complete(done('a', a, 'delivered', { token: 't1' }))).toEqual(['OK']);
      expect(await complete(done('a', a, 'failed', { token: 't2', dueMs: 1 }))).toEqual(['GONE']);
      // The next one is free, and what t2 held does not end it.
      expect(await claim('t3')).toMatchObject({ claims: [{ ref: a2, attempts: 0, lapses: 0 }] });
      expect(await complete(done('a', a, 'delivered', { token: 't1' }))).toEqual(['GONE']);
      expect(await complete(done('a', a2, 'delivered', { token: 't3' }))).toEqual(['OK']);
    });

    test('a late delivered does not free a lane that holds another event', async () => {
      const { t, x, route, claim, complete } = await start({ sub: { unordered: true } });
      const [a, b] = (await route([`${START_MS}-0`, 'a'], [`${START_MS}-1`, 'a'])) as [string, string];
      await claim('t1');
      t.clock.ms += LEASE_MS;
      await claim('t2');
      await complete(done(`a\0${a}`, a, 'delivered', { token: 't1' }));
      expect(await redis().call('hkeys', x.claims)).toEqual([`a\0${b}`]);
    });

    test('several in one call, each with its own answer; records lie in the bucket of their event', async () => {
      const { t, record, route, claim, complete } = await start();
      const early = START_MS - 3 * BUCKET_MS;
      const [a, b] = (await route([`${early}-0`, 'a'], [`${START_MS}-0`, 'b'])) as [string, string];
      await claim();
      t.clock.ms += 1;
      expect(
        await complete(done('a', a, 'delivered'), done('b', b, 'delivered', { token: 'no' }), done('b', a, 'dead')),
      ).toEqual(['OK', 'OK', 'GONE']);
      expect(await record(a, early)).toBe('delivered 1 1 x');
      expect(await record(b, START_MS)).toBe('delivered 1 1 x');
    });

    test('does not make a removed subscription again', async () => {
      const { t, inbox, route, claim, complete, subscription } = await start();
      const [a] = (await route([`${START_MS}-0`, 'a'])) as [string];
      await claim();
      await t.control.dropInbox(1, t.tenant, inbox, 60_000);
      expect(await complete(done('a', a, 'delivered'))).toEqual(['OK']);
      expect(await subscription()).toEqual({});
    });
  });

  describe('expire', () => {
    test('ends what is open before the cut, oldest first, and leaves the rest', async () => {
      const { t, inbox, x, subscription, record, route, claim } = await start();
      const old = START_MS - 5 * HOUR_MS;
      const [a, a2, b] = (await route([`${old}-0`, 'a'], [`${START_MS}-0`, 'a'], [`${START_MS}-1`, 'b'])) as string[];
      await claim();
      expect(await t.inboxes.expire(inbox, t.nowMs(), `${START_MS}-0`)).toEqual({ more: false, expired: 1 });
      expect(await record(a as string, old)).toBe(`expired ${START_MS} 0 retention -`);
      expect((await subscription())['n:expired']).toBe('1');
      expect(await redis().call('zrange', x.final, 0, -1)).toEqual([a]);
      expect(await redis().call('xlen', x.log)).toBe(2);
      // The claim of the expired one is gone, the other one's is not.
      expect(await claim('t2')).toMatchObject({ claims: [{ lane: 'a', ref: a2 }] });
      expect(await redis().call('hget', x.claims, 'b')).toBe(`t1|${b}`);
      expect(await t.inboxes.expire(inbox, t.nowMs(), `${START_MS}-0`)).toEqual({ more: false, expired: 0 });
    });

    test('what was delivered does not expire', async () => {
      const { t, inbox, record, route, claim, complete } = await start();
      const [a] = (await route([`${START_MS}-0`, 'a'])) as [string];
      await claim();
      await complete(done('a', a, 'delivered'));
      expect(await t.inboxes.expire(inbox, t.nowMs(), `${START_MS + 1}-0`)).toEqual({ more: false, expired: 0 });
      expect(await record(a, START_MS)).toBe('delivered 1 1 x');
    });

    test('without order each lane ends by itself', async () => {
      const { t, inbox, x, route } = await start({ sub: { unordered: true } });
      await route([`${START_MS}-0`, 'a'], [`${START_MS}-1`, 'a'], [`${START_MS + 9}-0`, 'a']);
      expect(await t.inboxes.expire(inbox, t.nowMs(), `${START_MS + 1}-0`)).toEqual({ more: false, expired: 2 });
      expect(await redis().call('zcard', x.due)).toBe(1);
      expect(await redis().call('zcard', x.pending)).toBe(1);
    });

    test('200 a call, and after a long absence each record still lies in the bucket of its event', async () => {
      const { t, inbox, x, record, route } = await start();
      const oldest = START_MS - 20 * BUCKET_MS;
      const ids = Array.from({ length: 250 }, (_, i) => [`${oldest + i * 2_000_000}-0`, 'a'] as [string, string]);
      const refs = [...(await route(...ids.slice(0, 150))), ...(await route(...ids.slice(150)))];
      let expired = 0;
      let calls = 0;
      for (let more = true; more; calls++) {
        const answer = await t.inboxes.expire(inbox, t.nowMs(), `${START_MS + 10 * BUCKET_MS}-0`);
        more = answer.more;
        expired += answer.expired;
        expect(calls).toBeLessThan(30);
      }
      expect(expired).toBe(250);
      for (const i of [0, 42, 180, 249]) {
        expect(await record(refs[i] as string, oldest + i * 2_000_000)).toBe(`expired ${START_MS} 0 retention -`);
      }
      expect(await redis().call('exists', x.pending, x.due)).toBe(0);
      expect(await redis().call('xlen', x.log)).toBe(0);
    });

    test('forgets what ended longer ago than its record', async () => {
      const { t, inbox, x, route } = await start();
      await route([`${START_MS}-0`, 'a']);
      await t.inboxes.expire(inbox, t.nowMs(), `${START_MS + 1}-0`);
      await t.inboxes.expire(inbox, t.nowMs() + RECORD_TTL_MS, `${START_MS + 2}-0`);
      expect(await redis().call('zcard', x.final)).toBe(1);
      await t.inboxes.expire(inbox, t.nowMs() + RECORD_TTL_MS + 1, `${START_MS + 2}-0`);
      expect(await redis().call('zcard', x.final)).toBe(0);
    });
  });
});
