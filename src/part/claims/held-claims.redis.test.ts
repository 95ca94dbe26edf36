import { describe, expect, test } from 'vitest';
import { createTestPart, READY_MS, type TestDispatcher, type TestPart } from '../../../test/support/part/part.ts';
import { NOT_PUSHED } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { ScriptClient } from '../call.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';
import { createExchange } from './exchange.ts';
import { createEvict } from './held-claims.ts';
import type { Claim } from './message.ts';

onEachRedis(redis => {
  async function start(keys = ['k', 'l', 'm']) {
    const t = createTestPart(redis());
    await t.setUp({ a: { cap: 400 } }, keys);
    return { t, d: t.dispatcher('d1'), e: t.dispatcher('d2') };
  }

  describe('evict', () => {
    test('refuses to evict an active dispatcher', async () => {
      const { t, d } = await start();
      await t.send('k');
      await d.exchange();
      t.clock.ms += READY_MS - 1;
      expect(await t.evict('d1')).toEqual({ answer: 'HELD' });
      expect(await t.own('d1')).toHaveLength(1);
      t.clock.ms += 1;
      expect(await t.evict('d1')).toEqual({ answer: 'OK', claims: 1 });
      expect(await t.own('d1')).toEqual([]);
      expect(await t.hash('ready')).toEqual({});
    });

    test('makes the claims available with a lapse each, and does not affect others', async () => {
      const { t, d, e } = await start();
      const [first] = await t.send('k', 'k');
      await d.exchange(64, { limit: 1 });
      await t.send('l');
      await e.exchange();
      t.clock.ms += READY_MS;
      await e.exchange(0);
      expect(await t.evict('d1')).toEqual({ answer: 'OK', claims: 1 });
      expect((await t.counts('a'))[0]).toBe(1);
      const { claims } = await e.exchange();
      expect(claims).toMatchObject([{ ref: first, lapses: 1, attempts: 0, behind: true }]);
    });

    test('releases all claims of more than one slice', async () => {
      const keys = Array.from({ length: 600 }, (_, i) => `g${i}`);
      const { t, d } = await start(keys);
      for (let at = 0; at < 600; at += 60) await t.send(...keys.slice(at, at + 60));
      for (let i = 0; i < 5; i++) await d.exchange(120, { limit: 600 });
      expect(await t.own('d1')).toHaveLength(600);
      t.clock.ms += READY_MS;
      expect(await t.evict('d1')).toEqual({ answer: 'OK', claims: 600 });
      expect(await t.counts('a')).toEqual([0, 600, 1, 0, 0, 0]);
    });

    test('an event that lapsed once is sent before all later ones', async () => {
      const { t, d, e } = await start();
      await t.send('k', 'l');
      await d.exchange();
      t.clock.ms += READY_MS;
      await t.send('m');
      await t.evict('d1');
      expect((await e.exchange(2)).claims.map(({ lane, lapses }) => [lane.slice(8), lapses])).toEqual([
        ['k', 1],
        ['l', 1],
      ]);
    });

    test('events that lapsed twice are claimed one at a time', async () => {
      const { t, d, e } = await start();
      await t.send('k', 'l', 'm');
      for (const dispatcher of [d, t.dispatcher('d3')]) {
        expect((await dispatcher.exchange()).claims).toHaveLength(3);
        t.clock.ms += READY_MS;
        await t.evict(dispatcher.name);
      }
      const [claim, ...others] = (await e.exchange()).claims;
      expect([claim?.lapses, others]).toEqual([2, []]);
      expect((await e.exchange()).claims).toEqual([]);
      e.end(claim as Claim);
      expect((await e.exchange()).claims).toMatchObject([{ lapses: 2 }]);
    });

    test('an event that lapsed twice is claimed even if there are always more others than can be claimed', async () => {
      const others = Array.from({ length: 8 }, (_, i) => `o${i}`);
      const { t, d, e } = await start(['k', ...others]);
      await t.setRow('a', { cap: 2 });
      await t.send('k');
      for (const dispatcher of [d, t.dispatcher('d3')]) {
        await dispatcher.exchange(64, NOT_PUSHED);
        t.clock.ms += READY_MS;
        await t.evict(dispatcher.name);
      }
      const lapses: number[] = [];
      for (let calls = 0; calls < 8; calls++) {
        await t.send(...others);
        t.clock.ms += 1;
        const { claims } = await e.exchange(64, NOT_PUSHED);
        expect(claims).toHaveLength(4);
        for (const claim of claims) {
          lapses.push(claim.lapses);
          e.end(claim);
        }
      }
      expect(lapses.filter(count => count > 0)).toEqual([2]);
    });

    test('an event that was answered is not suspected because of earlier lapses', async () => {
      const { t, d, e } = await start();
      await t.send('k');
      const lapse = async () => {
        const [claim] = (await d.exchange()).claims;
        t.clock.ms += READY_MS;
        d.held.clear();
        await t.evict('d1');
        return claim;
      };
      for (let lapses = 0; lapses < 4; lapses++) expect(await lapse()).toMatchObject({ attempts: 0, lapses });
      // It is not an answer if it was not sent.
      e.end((await e.exchange()).claims[0] as Claim, 'released');
      const [claim] = (await e.exchange()).claims;
      expect(claim).toMatchObject({ attempts: 0, lapses: 4 });
      e.end(claim as Claim, 'failed', { reason: '500', dueMs: t.clock.ms });
      await e.exchange(0);
      for (let lapses = 0; lapses < 5; lapses++) expect(await lapse()).toMatchObject({ attempts: 1, lapses });
      expect((await e.exchange()).claims).toMatchObject([{ attempts: 1, lapses: 5 }]);
    });

    test('events of a deactivated key stay parked', async () => {
      const { t, d, e } = await start();
      await t.send('k');
      await d.exchange();
      await t.deactivate('a', 'k');
      t.clock.ms += READY_MS;
      await t.evict('d1');
      expect((await e.exchange()).claims).toEqual([]);
      await t.activate('a', 'k');
      expect((await e.exchange()).claims).toMatchObject([{ lapses: 1 }]);
    });

    test('only accepts delivered from an evicted dispatcher', async () => {
      const { t, d, e } = await start();
      const [ref = ''] = await t.send('k', 'l');
      const claims = (await d.exchange()).claims as [Claim, Claim];
      t.clock.ms += READY_MS;
      await t.evict('d1');
      d.end(claims[0]);
      d.end(claims[1], 'failed', { dueMs: t.clock.ms });
      expect((await d.exchange(0)).answers).toEqual(['done', 'stale']);
      expect(await t.records(ref)).toMatchObject([{ outcome: 'delivered' }]);
      expect((await e.exchange()).claims).toMatchObject([{ lane: claims[1].lane, attempts: 0 }]);
    });
  });

  describe('an eviction of several pages', () => {
    const keys = Array.from({ length: 700 }, (_, i) => `g${i}`);
    const HOUR_MS = 3_600_000;

    /** The dispatcher d1 has claimed the first event of each lane. */
    async function hold() {
      const { t, d, e } = await start(keys);
      for (let at = 0; at < keys.length; at += 50) await t.send(...keys.slice(at, at + 50));
      for (let i = 0; i < 7; i++) await d.exchange(128, { limit: 700 });
      expect(await t.own('d1')).toHaveLength(700);
      return { t, d, e };
    }

    /** Calls Redis once. Afterwards, it waits until `next` ends, or crashes if there is no `next`. */
    function evictOnce(t: TestPart, next = (): Promise<void> => Promise.reject(new Error('died'))) {
      let calls = 0;
      const runNamed: ScriptClient['runNamed'] = async (script, call) => {
        if (++calls === 2) await next();
        return t.client.runNamed(script, call);
      };
      return createEvict({ ...t.client, runNamed })(t.part, 'd1');
    }

    async function sendAll(d: TestDispatcher): Promise<string[]> {
      const lanes: string[] = [];
      for (let i = 0; i < 30; i++) {
        const { claims } = await d.exchange(128);
        for (const claim of claims) {
          lanes.push(claim.lane);
          d.end(claim);
        }
      }
      return lanes;
    }

    test('is continued by another dispatcher if its caller crashes', async () => {
      const { t, e } = await hold();
      t.clock.ms += READY_MS;
      expect((await e.exchange(0)).lapsed).toEqual(['d1']);
      await expect(evictOnce(t)).rejects.toThrow('died');
      const left = (await t.own('d1')).length;
      expect([left > 0, left < 700]).toEqual([true, true]);
      const other = t.dispatcher('d3');
      expect((await other.exchange(0)).lapsed).toEqual(['d1']);
      expect(await t.evict('d1')).toEqual({ answer: 'OK', claims: left });
      expect((await other.exchange(0)).lapsed).toEqual([]);
      expect(new Set(await sendAll(other)).size).toBe(700);
      expect((await t.counts('a')).slice(0, 4)).toEqual([0, 700, expect.any(Number), 700]);
    });

    test('continues all lanes whose events have expired', async () => {
      const { t } = await hold();
      await t.change({ kind: 'meta', field: 'retentionMs', value: String(2 * HOUR_MS) });
      t.clock.ms += HOUR_MS;
      for (let at = 0; at < keys.length; at += 50) await t.send(...keys.slice(at, at + 50));
      t.clock.ms += HOUR_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ expired: 700 });
      await expect(evictOnce(t)).rejects.toThrow('died');
      const other = t.dispatcher('d3');
      expect((await other.exchange(0)).lapsed).toEqual(['d1']);
      await t.evict('d1');
      expect(new Set(await sendAll(other)).size).toBe(700);
      expect((await t.counts('a')).slice(0, 6)).toEqual([0, 1400, expect.any(Number), 700, 0, 700]);
    });

    test('ends if the dispatcher is active again, which only keeps the other claims', async () => {
      const { t, d, e } = await hold();
      t.clock.ms += READY_MS;
      const late = d.holding({ number: 0 });
      expect(await evictOnce(t, () => d.exchange(0).then(() => undefined))).toEqual({ answer: 'HELD' });
      await expect(createExchange(t.client)(t.part, late, [], 64)).rejects.toThrow('later exchange');
      const left = await t.own('d1');
      const taken = [...d.held.values()].filter(({ lane }) => !left.some(own => own.lane === lane));
      expect([taken.length > 0, left.length > 0]).toEqual([true, true]);
      expect((await e.exchange(1)).claims).toMatchObject([{ lapses: 1 }]);
      for (const claim of taken) d.end(claim, 'failed', { dueMs: t.clock.ms });
      expect(new Set((await d.exchange(0)).answers)).toEqual(new Set(['stale']));
    });

    test('ends if the dispatcher was active again and has lapsed once more', async () => {
      const { t, d, e } = await hold();
      t.clock.ms += READY_MS;
      const again = async () => {
        // Some of the new claims are on pages that were already read.
        await d.exchange(64);
        t.clock.ms += READY_MS;
      };
      expect(await evictOnce(t, again)).toEqual({ answer: 'HELD' });
      expect((await e.exchange(0)).lapsed).toEqual(['d1']);
      await t.evict('d1');
      expect(await t.own('d1')).toEqual([]);
      expect((await t.counts('a'))[0]).toBe(0);
    });
  });

  describe('a late delivery of an evicted dispatcher while another one sends the event again', () => {
    async function resend() {
      const { t, d, e } = await start();
      const [first = '', second = ''] = await t.send('k', 'k');
      const [late] = (await d.exchange(1, NOT_PUSHED)).claims as [Claim];
      t.clock.ms += READY_MS;
      await t.evict('d1');
      const [again] = (await e.exchange(1, NOT_PUSHED)).claims as [Claim];
      expect(again).toMatchObject({ ref: first, lapses: 1 });
      d.end(late);
      expect(await d.exchange(64, NOT_PUSHED)).toMatchObject({ answers: ['done'], claims: [] });
      return { t, d, e, again, late, first, second };
    }

    test('is accepted, and the lane continues after the current attempt', async () => {
      const { t, d, e, again, first, second } = await resend();
      expect(await t.records(first)).toMatchObject([{ outcome: 'delivered' }]);
      expect(await t.counts('a')).toEqual([1, 2, 0, 1, 0, 0]);
      expect(await t.own('d2')).toEqual([{ lane: again.lane, ref: first }]);
      e.end(again, 'failed', { dueMs: t.clock.ms + 60_000 });
      expect(await e.exchange(64, NOT_PUSHED)).toMatchObject({ answers: ['ended'], claims: [{ ref: second }] });
      expect((await d.exchange(64, NOT_PUSHED)).claims).toEqual([]);
      expect(await t.records(first)).toHaveLength(1);
      expect(await t.counts('a')).toEqual([1, 2, 0, 1, 0, 0]);
    });

    test('is only accepted once if it is repeated, and the lane is kept', async () => {
      const { t, d, e, again, late, second } = await resend();
      d.end(late);
      expect(await d.exchange(64, NOT_PUSHED)).toMatchObject({ answers: ['ended'], claims: [] });
      e.end(again);
      expect(await e.exchange(64, NOT_PUSHED)).toMatchObject({ answers: ['ended'], claims: [{ ref: second }] });
      expect(await t.counts('a')).toEqual([1, 2, 0, 1, 0, 0]);
    });

    test('continues the lane even if the other dispatcher crashes', async () => {
      const { t, d, second } = await resend();
      t.clock.ms += READY_MS;
      await d.exchange(0, NOT_PUSHED);
      expect(await t.evict('d2')).toEqual({ answer: 'OK', claims: 1 });
      expect((await d.exchange(64, NOT_PUSHED)).claims).toMatchObject([{ ref: second, lapses: 0 }]);
    });
  });

  describe('an exchange that Redis runs after a later exchange of the same dispatcher', () => {
    test('does not end claims, even if the same events are claimed again', async () => {
      const { t, d } = await start();
      await t.send('k', 'k');
      const [claim] = (await d.exchange(1, NOT_PUSHED)).claims as [Claim];
      d.end(claim, 'failed', { dueMs: t.clock.ms });
      const [late, ended] = [d.holding(NOT_PUSHED), [...d.ended]];
      expect((await d.exchange(1, NOT_PUSHED)).claims).toMatchObject([{ ref: claim.ref, attempts: 1 }]);
      const before = await t.hash('tries');
      await expect(createExchange(t.client)(t.part, late, ended, 64)).rejects.toThrow('later exchange');
      expect(await t.own('d1')).toEqual([{ lane: claim.lane, ref: claim.ref }]);
      expect(await t.hash('tries')).toEqual(before);
    });

    test('does not claim or push anything for a stopped dispatcher', async () => {
      const { t, d } = await start();
      await t.send('k');
      const late = d.holding();
      await d.exchange(0, { limit: 0 });
      await expect(createExchange(t.client)(t.part, late, [], 64)).rejects.toThrow('later exchange');
      await t.send('l');
      expect(await t.own('d1')).toEqual([]);
      expect((await t.counts('a')).slice(0, 2)).toEqual([0, 2]);
    });
  });

  describe('own claims', () => {
    test('include pushed claims and claims in replies', async () => {
      const { t, d, e } = await start();
      await t.send('k');
      const { claims } = await d.exchange();
      await t.send('l');
      await e.exchange();
      expect((await t.own('d1')).length + (await t.own('d2')).length).toBe(2);
      expect(await t.own('d1')).toContainEqual({ lane: claims[0]?.lane, ref: claims[0]?.ref });
      expect(await t.own('d3')).toEqual([]);
    });
  });
});
