import { describe, expect, test } from 'vitest';
import { expectEmpty, READY_MS, START_MS, startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Claim } from './message.ts';

onEachRedis(redis => {
  const start = (subs?: Parameters<typeof startPart>[1], groupKeys?: string[]) => startPart(redis(), subs, groupKeys);

  describe('ending', () => {
    test('delivered: counts, records, and continues the lane in the same step', async () => {
      const { t, d } = await start();
      const [first = '', second] = await t.send('k', 'k');
      const [claim] = (await d.exchange()).claims;
      t.clock.ms += 1_500;
      d.end(claim as NonNullable<typeof claim>, 'delivered', { reason: '204', latencyMs: 31 });
      const next = await d.exchange();
      expect(next.answers).toEqual(['done']);
      expect(next.claims).toMatchObject([{ ref: second, behind: false }]);
      expect(await t.counts('a')).toEqual([1, 2, 0, 1, 0, 0]);
      expect(await t.records(first)).toEqual([
        {
          slot: t.slot('a'),
          outcome: 'delivered',
          endedMs: START_MS + 1_500,
          attempts: 1,
          reason: '204',
          latencyMs: 31,
          failed: [],
        },
      ]);
      d.end(next.claims[0] as NonNullable<typeof claim>);
      await d.exchange();
      await expectEmpty(redis(), t);
      expect((await t.hash('meta')).out).toMatch(/ 2 0 0$/);
    });

    test('delivered: does not continue the lane of a subscription that was held in the meantime', async () => {
      const { t, d } = await start();
      const [, second] = await t.send('k', 'k');
      const [claim] = (await d.exchange()).claims;
      await t.setRow('a', { send: 'held' });
      d.end(claim as Claim);
      expect(await d.exchange()).toMatchObject({ answers: ['done'], claims: [] });
      await t.setRow('a', {});
      expect((await d.exchange()).claims).toMatchObject([{ ref: second }]);
    });

    test('does not count below zero after counts were lost', async () => {
      const { t, d } = await start();
      await t.send('k', 'l');
      const [one, other] = (await d.exchange()).claims as [Claim, Claim];
      await redis().call('del', t.keys.counts);
      d.end(one);
      await d.exchange();
      expect((await t.counts('a'))[0]).toBe(0);
      t.clock.ms += READY_MS;
      await redis().call('del', t.keys.counts);
      expect(await t.evict('d1')).toEqual({ answer: 'OK', claims: 1 });
      expect((await t.counts('a'))[0]).toBe(0);
      d.held.clear();
      await t.send('m');
      expect((await d.exchange()).claims.map(({ ref }) => ref)).toContain(other.ref);
    });

    test('failed: waits for its retry before later events', async () => {
      const { t, d } = await start();
      const [first] = await t.send('k', 'k');
      const [claim] = (await d.exchange()).claims;
      d.end(claim as NonNullable<typeof claim>, 'failed', { reason: '500', dueMs: t.clock.ms + 5_000 });
      expect(await d.exchange()).toMatchObject({ answers: ['done'], claims: [], dueMs: t.clock.ms + 5_000 });
      await t.send('k');
      t.clock.ms += 4_999;
      expect((await d.exchange()).claims).toEqual([]);
      t.clock.ms += 1;
      expect((await d.exchange()).claims).toMatchObject([{ ref: first, attempts: 1, lapses: 0, behind: true }]);
    });

    test('dead: recorded with its previous attempts, and listed', async () => {
      const { t, d } = await start();
      const [ref = ''] = await t.send('k');
      const [claim] = (await d.exchange()).claims;
      d.end(claim as NonNullable<typeof claim>, 'failed', { reason: 'timeout', latencyMs: 10, dueMs: t.clock.ms + 5 });
      await d.exchange();
      t.clock.ms += 10;
      const [again] = (await d.exchange()).claims;
      d.end(again as NonNullable<typeof claim>, 'dead', { reason: '500', latencyMs: 20 });
      await d.exchange();
      expect(await t.records(ref)).toMatchObject([
        {
          outcome: 'dead',
          attempts: 2,
          reason: '500',
          latencyMs: 20,
          failed: [{ endedMs: START_MS, reason: 'timeout', latencyMs: 10 }],
        },
      ]);
      expect(await t.members('final')).toEqual([t.slot('a') + ref]);
      expect(await t.counts('a')).toEqual([0, 1, 0, 0, 1, 0]);
      await expectEmpty(redis(), t);
    });

    test('released: claimed again immediately, without counting an attempt', async () => {
      const { t, d } = await start();
      await t.send('k');
      const [claim] = (await d.exchange()).claims;
      d.end(claim as NonNullable<typeof claim>, 'released');
      expect((await d.exchange()).claims).toMatchObject([{ ref: claim?.ref, attempts: 0, lapses: 0 }]);
    });

    test('only accepts results of the holder, and delivered once from any dispatcher', async () => {
      const { t, d } = await start();
      const [ref = ''] = await t.send('k', 'l');
      const [claim] = (await d.exchange()).claims;
      const e = t.dispatcher('d2');
      const stale = claim as NonNullable<typeof claim>;
      for (const outcome of ['failed', 'dead', 'released'] as const) e.end(stale, outcome);
      expect((await e.exchange(0)).answers).toEqual(['stale', 'stale', 'stale']);
      e.end(stale);
      e.end(stale);
      d.end(stale);
      expect((await e.exchange(0)).answers).toEqual(['done', 'ended']);
      expect((await d.exchange(0)).answers).toEqual(['ended']);
      expect(await t.records(ref)).toHaveLength(1);
      expect(await t.counts('a')).toEqual([1, 2, 0, 1, 0, 0]);
    });

    test('delivered by an earlier holder while waiting for a retry continues the lane', async () => {
      const { t, d } = await start();
      const [, second] = await t.send('k', 'k');
      const [claim] = (await d.exchange()).claims;
      d.end(claim as NonNullable<typeof claim>, 'failed', { dueMs: t.clock.ms + 60_000 });
      await d.exchange();
      const e = t.dispatcher('d2');
      e.end(claim as NonNullable<typeof claim>);
      const answer = await e.exchange();
      expect(answer).toMatchObject({ answers: ['done'], claims: [{ ref: second }], dueMs: undefined });
      e.end(answer.claims[0] as NonNullable<typeof claim>);
      await e.exchange();
      await expectEmpty(redis(), t);
    });

    test('the same lane twice in one call', async () => {
      const { t, d } = await start();
      const [first = '', second = '', third] = await t.send('k', 'k', 'k');
      await d.exchange();
      const lane = `${t.slot('a')}k`;
      for (const ref of [first, second]) d.end({ lane, ref });
      const answer = await d.exchange();
      expect(answer.answers).toEqual(['done', 'done']);
      expect(answer.claims.at(-1)).toMatchObject({ ref: third });
      expect(await t.counts('a')).toEqual([1, 3, 0, 2, 0, 0]);
    });

    test('is delivered if it was also released in the same call', async () => {
      const { t, d } = await start();
      const [ref = ''] = await t.send('k');
      const [claim] = (await d.exchange()).claims;
      d.end(claim as NonNullable<typeof claim>, 'released');
      d.end(claim as NonNullable<typeof claim>);
      expect(await d.exchange()).toMatchObject({ answers: ['done', 'done'], claims: [] });
      expect(await t.records(ref)).toMatchObject([{ outcome: 'delivered' }]);
      await expectEmpty(redis(), t);
    });

    test('a later event that was tried before is not sent before its own retry', async () => {
      const { t, d } = await start();
      const [, second = ''] = await t.send('k', 'k');
      const [claim] = (await d.exchange()).claims;
      const dueMs = t.clock.ms + 5_000;
      await redis().call('hset', t.keys.tries, `${t.slot('a')}k\0${second}`, `1 0 ${dueMs}`);
      d.end(claim as NonNullable<typeof claim>);
      expect(await d.exchange()).toMatchObject({ claims: [], dueMs });
      t.clock.ms = dueMs;
      expect((await d.exchange()).claims).toMatchObject([{ ref: second, attempts: 1 }]);
    });

    test('lanes that are waiting come before the next event of a lane that had its turn', async () => {
      const { t, d, keyOf } = await start({ a: { cap: 1 } }, ['k', 'l', 'm']);
      await t.send('k', 'k', 'l', 'm');
      const { claims } = await d.exchange();
      expect(claims.map(({ lane }) => keyOf(lane))).toEqual(['k', 'l']);
      t.clock.ms += 1;
      d.end(claims[0] as (typeof claims)[0]);
      expect((await d.exchange()).claims.map(({ lane }) => keyOf(lane))).toEqual(['m']);
    });

    test('records of many subscriptions are stored in chunks, and none is lost', async () => {
      const names = Array.from({ length: 200 }, (_, i) => `s${i}`);
      const { t, d } = await start(Object.fromEntries(names.map(name => [name, {}])), ['k']);
      const [ref = ''] = await t.send('k');
      for (let left = 200; left > 0; ) {
        const { claims } = await d.exchange();
        left -= claims.length;
        for (const claim of claims) d.end(claim);
      }
      await d.exchange();
      const records = await t.records(ref);
      expect(new Set(records.map(({ slot }) => slot))).toEqual(new Set(names.map(t.slot)));
      expect(records).toHaveLength(200);
      const sizes = await t.chunkSizes(ref);
      expect(Math.max(...sizes)).toBeLessThan(1_700);
      expect(sizes.length).toBeGreaterThan(2);
    });

    test('bodies of failed responses are stored, up to the last 64 KiB of a subscription', async () => {
      const { t, d } = await start();
      await t.send('k');
      for (let n = 1; n <= 6; n++) {
        const [claim] = (await d.exchange()).claims;
        const responseBody = Buffer.alloc(16_000, n);
        d.end(claim as NonNullable<typeof claim>, 'failed', {
          dueMs: t.clock.ms,
          responseBody,
          responseTruncated: true,
        });
      }
      await d.exchange(0);
      const head = String(await redis().call('hget', t.keys.answers, t.slot('a')));
      expect(head).toMatch(/^2 6 64\d\d\d$/);
      expect(await redis().call('hlen', t.keys.answers)).toBe(5);
    });
  });
});
