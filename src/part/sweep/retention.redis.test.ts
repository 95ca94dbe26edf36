import { describe, expect, test } from 'vitest';
import { event, expectEmpty, START_MS, startPart, type TestPart } from '../../../test/support/part/part.ts';
import type { EventState } from '../../core/events/event-state.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createWalkSlot } from '../inbox/walk.ts';
import { recordsBucketOf } from '../keys.ts';
import { sweepAll } from './testing/sweep-all.ts';

const HOUR_MS = 3_600_000;
const RETENTION_MS = 2 * HOUR_MS;
const OPEN_COST = 450;

onEachRedis(redis => {
  async function start(...args: Parameters<typeof startPart> extends [unknown, ...infer Rest] ? Rest : never) {
    const world = await startPart(redis(), ...args);
    await world.t.change({ kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) });
    return world;
  }
  const bytesOf = async (t: TestPart) => Number((await t.hash('meta')).bytes);
  /** Returns the bytes of the expired deliveries, whose records are kept longer. */
  const failedBytesOf = async ({ keys }: TestPart) =>
    Number(await redis().call('hget', keys.records(recordsBucketOf(START_MS)), ''));

  describe('retention', () => {
    test('removes expired events, keeps the rest, and releases the quota', async () => {
      const { t, d } = await start();
      await t.ingest(event('k', { senderId: 'x', body: Buffer.alloc(20_000) }), event('l'), event(''));
      t.clock.ms += HOUR_MS;
      const [young] = await t.send('k');
      const before = await bytesOf(t);
      const { events, dueInMs } = await sweepAll(t);
      expect(events).toBe(0);
      // Earlier buckets of records, which this part has never had, are checked.
      expect(dueInMs).toBeLessThanOrEqual(HOUR_MS + 1);
      t.clock.ms += HOUR_MS + 1;
      const removed = (await t.log()).slice(0, 3).reduce((sum, { cost }) => sum + cost, 0);
      expect(await sweepAll(t)).toMatchObject({ events: 3, expired: 2 });
      expect(await bytesOf(t)).toBe(before - removed - 2 * OPEN_COST + (await failedBytesOf(t)));
      expect(await redis().call('hkeys', t.keys.body)).toEqual([young]);
      expect((await d.exchange()).events.map(({ ref }) => ref)).toEqual([young]);
    });

    test('ends waiting, retrying, parked, held, and claimed events as expired', async () => {
      const { t, d } = await start({ a: {}, held: { send: 'held' } }, ['k', 'l', 'm', 'n']);
      const [retrying, claimed, parked, waiting] = (await t.send('k', 'l', 'm', 'n')) as [
        string,
        string,
        string,
        string,
      ];
      await d.exchange(1);
      const first = [...d.held.values()][0];
      if (first === undefined) throw new Error('nothing was claimed');
      d.end(first, 'failed', { dueMs: t.clock.ms + 10 * HOUR_MS, reason: '500' });
      await d.exchange(0);
      await d.exchange(1);
      await t.deactivate('a', 'm');
      t.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ events: 4, expired: 8 });
      expect(await t.counts('a')).toEqual([1, 4, expect.any(Number), 0, 0, 4]);
      expect(await t.counts('held')).toEqual([0, 4, expect.any(Number), 0, 0, 4]);
      for (const ref of [retrying, claimed, parked, waiting]) {
        const records = await t.records(ref);
        expect(records.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual(
          Array(2).fill('expired retention'),
        );
      }
      const [, attempts] = (await t.records(first.ref)).map(each => each.attempts).toSorted((a, b) => a - b);
      expect(attempts).toBe(1);
      expect(await t.members('final')).toHaveLength(8);
      for (const claim of d.held.values()) d.end(claim);
      expect((await d.exchange(0)).answers).toEqual(['ended']);
      expect(await t.counts('a')).toEqual([0, 4, expect.any(Number), 0, 0, 4]);
      await sweepAll(t, {});
      t.clock.ms += 7 * HOUR_MS;
      await sweepAll(t, {});
      await expectEmpty(redis(), t);
    });

    test('releases capacity for waiting events when the attempts of expired events end', async () => {
      const { t, d } = await start({ a: { cap: 1 } });
      await t.send('k', 'l');
      expect((await d.exchange()).claims).toHaveLength(2);
      t.clock.ms += HOUR_MS;
      const [waiting] = await t.send('m');
      // The slot has reached its limit of claims, so it has no turn.
      expect((await d.exchange()).claims).toEqual([]);
      t.clock.ms += HOUR_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ events: 2, expired: 2 });
      expect((await d.exchange()).claims).toEqual([]);
      for (const claim of d.held.values()) d.end(claim, 'failed');
      const { answers, claims } = await d.exchange();
      expect(answers).toEqual(['ended', 'ended']);
      expect(claims).toMatchObject([{ ref: waiting }]);
    });

    test('lists up to 100,000 failed deliveries of a subscription, and only counts the others', async () => {
      const { t } = await start({ a: {}, b: {} }, ['k']);
      const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');
      const oldRef = (n: number) => hex(START_MS - 1 - (n >> 16), 11) + hex(n & 0xffff, 4);
      const listed = Array.from({ length: 100_000 }, (_, n) => t.slot('a') + oldRef(n));
      for (let from = 0; from < listed.length; from += 10_000) {
        await redis().call('zadd', t.keys.final, ...listed.slice(from, from + 10_000).flatMap(name => ['0', name]));
      }
      const [ref] = (await t.send('k')) as [string];
      t.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ expired: 2 });
      expect(await redis().call('zcard', t.keys.final)).toBe(100_001);
      expect(await t.records(ref)).toHaveLength(1);
      expect((await t.counts('a'))[5]).toBe(1);
    });

    test.each(['delivered', 'failed', 'dead', 'released'] as const)(
      'during an attempt, no other dispatcher sends anything, and the attempt ends as %s',
      async outcome => {
        const { t, d } = await start({ a: {} }, ['k']);
        const other = t.dispatcher('d2');
        const [first] = (await t.send('k')) as [string];
        const [claim] = (await d.exchange()).claims;
        t.clock.ms += HOUR_MS;
        const [second] = await t.send('k');
        t.clock.ms += HOUR_MS + 1;
        expect(await sweepAll(t)).toMatchObject({ events: 1, expired: 1 });
        expect((await other.exchange()).claims).toEqual([]);
        expect(await t.counts('a')).toEqual([1, 2, expect.any(Number), 0, 0, 1]);
        const wasSent = outcome !== 'released';
        d.end(claim as NonNullable<typeof claim>, outcome, wasSent ? {} : { latencyMs: undefined });
        expect((await d.exchange(0)).answers).toEqual(['ended']);
        expect(await t.records(first)).toMatchObject([{ outcome: 'expired', attempts: wasSent ? 1 : 0 }]);
        expect((await other.exchange()).claims).toMatchObject([{ ref: second, attempts: 0, lapses: 0 }]);
        expect(await t.counts('a')).toEqual([1, 2, expect.any(Number), 0, 0, 1]);
      },
    );

    test('during an attempt, continues the lane if the dispatcher crashes', async () => {
      const { t, d } = await start({ a: {} }, ['k', 'l']);
      const other = t.dispatcher('d2');
      await t.send('k', 'l');
      await d.exchange();
      t.clock.ms += HOUR_MS;
      const [second] = await t.send('k');
      t.clock.ms += HOUR_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ events: 2, expired: 2 });
      expect(await t.evict('d1')).toEqual({ answer: 'OK', claims: 2 });
      const { claims } = await other.exchange();
      expect(claims).toMatchObject([{ ref: second, attempts: 0, lapses: 0 }]);
      for (const each of claims) other.end(each);
      await other.exchange();
      expect(await t.counts('a')).toEqual([0, 3, expect.any(Number), 1, 0, 2]);
      await expectEmpty(redis(), t);
    });

    test('during an attempt, shows the owner of the subscription that the event has expired', async () => {
      const { t, d } = await start({ a: {} }, ['k']);
      const [ref] = (await t.send('k')) as [string];
      await d.exchange();
      t.clock.ms += RETENTION_MS + 1;
      await sweepAll(t);
      const walk = createWalkSlot(t.client);
      const list = async (states: readonly EventState[]) => {
        const page = await walk({ part: t.part, slot: t.slot('a') }, { states, newestFirst: false, most: 4 });
        return page.answer === 'OK' ? page.events.map(({ progress }) => progress.state) : page.answer;
      };
      expect(await list(['pending', 'inflight', 'retrying'])).toEqual([]);
      expect(await list(['dead', 'skipped', 'expired'])).toEqual(['expired']);
      expect(await t.own('d1')).toMatchObject([{ ref }]);
    });

    test('the first event of a retrying lane expires: the next event does not wait for the retry', async () => {
      const { t, d } = await start({ a: {} }, ['k']);
      await t.send('k');
      const { claims } = await d.exchange();
      for (const claim of claims) d.end(claim, 'failed', { dueMs: t.clock.ms + 24 * HOUR_MS });
      t.clock.ms += HOUR_MS;
      const [second] = await t.send('k');
      await d.exchange();
      t.clock.ms += HOUR_MS + 1;
      await sweepAll(t);
      expect(await t.members('retries')).toEqual([]);
      expect((await d.exchange()).claims.map(({ ref }) => ref)).toEqual([second]);
    });

    test('without order, each event has a separate lane', async () => {
      const { t, d } = await start({ a: { unordered: true, cap: 1 } }, ['k']);
      await t.send('k', 'k', 'k', 'k');
      await d.exchange();
      t.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ events: 4, expired: 4 });
      expect((await t.counts('a'))[0]).toBe(2);
      for (const claim of d.held.values()) d.end(claim);
      expect((await d.exchange()).answers).toEqual(['ended', 'ended']);
      expect((await t.counts('a'))[0]).toBe(0);
      await expectEmpty(redis(), t);
    });

    test('moves a paused subscription past expired events, which are counted', async () => {
      const { t, d } = await start({ a: {}, b: {} }, ['k']);
      await t.setRow('a', { route: 'paused' });
      const [first] = (await t.send('k')) as [string];
      t.clock.ms += HOUR_MS;
      const [second] = (await t.send('k')) as [string];
      const position = (await t.hash('positions'))[t.slot('a')] as string;
      await sweepAll(t);
      expect((await t.hash('positions'))[t.slot('a')]).toBe(position);
      t.clock.ms += HOUR_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ events: 1, expired: 1, neverRouted: 1 });
      expect((await t.hash('positions'))[t.slot('a')]).toBe(first);
      await t.setRow('a', {});
      await t.advanceAll();
      const { claims } = await d.exchange();
      expect(claims.map(({ ref }) => ref)).toEqual([second, second]);
    });

    test('a late reference expires and is removed from the quota', async () => {
      const { t } = await start({ a: {} }, ['k']);
      await t.setRow('a', { route: 'paused' });
      await t.send('k');
      await t.setRow('a', {});
      await t.advanceAll();
      t.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ events: 1, expired: 1, neverRouted: 0 });
      expect(await bytesOf(t)).toBe(await failedBytesOf(t));
      expect(await redis().call('exists', t.keys.late, t.keys.body)).toBe(0);
    });

    test('moves a held part when the event that held it expires', async () => {
      const { t, d } = await start({ a: {} }, ['k']);
      await redis().call('hset', t.keys.meta, 'granted', '0');
      await t.send('k', 'k');
      expect((await t.hash('meta')).hold).toBe('tokens');
      t.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ events: 2, expired: 0, neverRouted: 2 });
      expect((await t.hash('meta')).out).toMatch(/ 0 0 2$/);
      expect((await t.hash('meta')).pos).toBe((await t.hash('meta')).tail);
      await t.advanceAll();
      expect((await t.hash('meta')).hold).toBeUndefined();
      await redis().call('hset', t.keys.meta, 'granted', '10');
      const [ref] = await t.send('k');
      expect((await d.exchange()).claims.map(each => each.ref)).toEqual([ref]);
    });

    test('many references and positions require several calls, which two callers can share', async () => {
      const names = Array.from({ length: 500 }, (_, i) => `s${i}`);
      const { t } = await start(Object.fromEntries(names.map(name => [name, {}])), ['k']);
      await t.send('k');
      const paused = names.slice(0, 300);
      for (const name of paused) await t.setRow(name, { route: 'paused' });
      await t.send('k');
      await t.send('k');
      t.clock.ms += RETENTION_MS + 1;
      const [one, two] = await Promise.all([sweepAll(t), sweepAll(t)]);
      expect(one.events + two.events).toBe(3);
      expect(one.expired + two.expired).toBe(500 + 2 * 200);
      expect(one.neverRouted + two.neverRouted).toBe(2 * 300);
      expect(one.calls).toBeGreaterThan(5);
      for (const name of [names[0], names[499]])
        expect((await t.counts(name as string))[5]).toBe(name === 's0' ? 1 : 3);
      expect(await bytesOf(t)).toBe(await failedBytesOf(t));
      await expectEmpty(redis(), t);
    });

    test('events that are exactly as old as the retention, to the millisecond, are kept', async () => {
      const { t } = await start();
      await t.send('k');
      t.clock.ms = START_MS + RETENTION_MS;
      expect(await sweepAll(t)).toMatchObject({ events: 0, dueInMs: 1 });
    });
  });
});
