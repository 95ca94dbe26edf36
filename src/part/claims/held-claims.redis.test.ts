import { describe, expect, test } from 'vitest';
import { createTestPart, READY_MS } from '../../../test/support/part/part.ts';
import { NOT_PUSHED } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createExchange } from './exchange.ts';
import type { Claim } from './message.ts';

onEachRedis(redis => {
  async function start(keys = ['k', 'l', 'm']) {
    const t = createTestPart(redis());
    await t.setUp({ a: { cap: 400 } }, keys);
    return { t, d: t.dispatcher('d1'), e: t.dispatcher('d2') };
  }

  describe('evict', () => {
    test('refuses to take from a dispatcher that is at work', async () => {
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

    test('takes all of more than a slice', async () => {
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

  describe('delivered late by who was evicted, while another sends it again', () => {
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

    test('continues the lane even if that dispatcher dies', async () => {
      const { t, d, second } = await resend();
      t.clock.ms += READY_MS;
      await d.exchange(0, NOT_PUSHED);
      expect(await t.evict('d2')).toEqual({ answer: 'OK', claims: 1 });
      expect((await d.exchange(64, NOT_PUSHED)).claims).toMatchObject([{ ref: second, lapses: 0 }]);
    });
  });

  describe('an exchange that Redis makes after a later one of the same dispatcher', () => {
    test('ends nothing, though the same is claimed again', async () => {
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

    test('claims nothing for a stopped dispatcher, and pushes nothing to it', async () => {
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
