import { describe, expect, test } from 'vitest';
import { event, row, startPart, type TestPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { SubscriptionRow } from '../gate/subscription-row.ts';
import { HOUR_MS } from '../keys.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';
import { createPartTrafficReader } from './traffic-reader.ts';

const PAUSED = { route: 'paused', send: 'held' } as const;

onEachRedis(redis => {
  const read = ({ part, clock }: TestPart, history: '1h' | '7d' = '1h') =>
    createPartTrafficReader(redis()).readReasons(part.tenant, part.queue, history, clock.ms);
  /** Returns the reasons with a count. */
  async function reasonsOf(t: TestPart): Promise<Readonly<Record<string, number>>> {
    const sums: Record<string, number> = {};
    for (const { reasons } of await read(t))
      for (const [reason, count] of Object.entries(reasons)) if (count > 0) sums[reason] = (sums[reason] ?? 0) + count;
    return sums;
  }
  /** Returns the number of events that were not routed to anyone. */
  const unrouted = async (t: TestPart) => Number((await t.hash('meta')).out?.split(' ').at(-1) ?? 0);
  const live = async (t: TestPart) => (await t.hash('meta')).live;

  describe('an event that is routed when it is stored', () => {
    test('counts every live subscription without an active key, and an event without a key once', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {}, c: { route: 'closed' }, d: {} }, ['k', 'l']);
      await t.deactivate('b', 'l');
      await t.send('k', 'l', 'other', '');
      expect(await reasonsOf(t)).toEqual({ missing_group_key: 1, not_activated: 1 + 3 });
      expect(await unrouted(t)).toBe(2);
      await t.change({ kind: 'drop', slot: t.slot('d') });
      await t.setRow('a', { route: 'closed' });
      await t.send('other');
      expect(await reasonsOf(t)).toEqual({ missing_group_key: 1, not_activated: 4 + 1 });
    });

    test('does not count a repeated event', async () => {
      const { t } = await startPart(redis(), { a: {} });
      for (let i = 0; i < 2; i++) await t.ingest(event('other', { senderId: 'x' }));
      expect(await reasonsOf(t)).toEqual({ not_activated: 1 });
      expect(await unrouted(t)).toBe(1);
    });
  });

  describe('a subscription that is paused', () => {
    test('is counted when it is live again, because it may still receive the event', async () => {
      const { t } = await startPart(redis(), { a: {} }, ['k']);
      await t.setRow('a', PAUSED);
      await t.send('k', 'other', '');
      expect(await reasonsOf(t)).toEqual({ missing_group_key: 1 });
      expect(await unrouted(t)).toBe(2);
      await t.setRow('a', {});
      await t.advanceAll();
      expect(await reasonsOf(t)).toEqual({ missing_group_key: 1, not_activated: 1 });
      await t.send('other');
      expect(await reasonsOf(t)).toEqual({ missing_group_key: 1, not_activated: 2 });
      expect(await unrouted(t)).toBe(3);
    });

    test('that skips counts the events that it would have received', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {} }, ['k']);
      await t.setRow('a', PAUSED);
      for (let i = 0; i < 6; i++)
        await t.send(...Array.from({ length: 60 }, (_, n) => ['k', 'other', ''][n % 3] ?? ''));
      await t.setRow('a', PAUSED, 'skip');
      await t.send('k');
      await t.setRow('a', {}, 'skip');
      await t.send('k');
      await t.advanceAll();
      expect(await reasonsOf(t)).toEqual({ missing_group_key: 120, not_activated: 2 * 120, skipped_to_now: 121 });
      // When the events were stored, they waited for this subscription.
      expect(await unrouted(t)).toBe(240);
      expect(await redis().call('exists', t.keys.skips)).toBe(0);
    });

    test('that skips is counted, together with many others', async () => {
      const { t } = await startPart(redis(), {}, []);
      const slots = Array.from({ length: 800 }, (_, n) => t.slot(`s${n}`));
      const setRows = async (fields: Partial<SubscriptionRow>, how?: 'skip') => {
        for (let at = 0; at < slots.length; at += 200) {
          const some = slots.slice(at, at + 200);
          await t.change(...some.map(slot => ({ kind: 'row' as const, slot, row: row(fields), ...(how && { how }) })));
        }
      };
      await setRows(PAUSED);
      await t.send('other');
      await setRows({}, 'skip');
      while (((await t.advance()) as { more: boolean }).more);
      expect(await reasonsOf(t)).toEqual({ not_activated: slots.length });
      expect(await redis().call('exists', t.keys.skips)).toBe(0);
    });

    test('only skips events since its key was activated', async () => {
      const { t } = await startPart(redis(), { a: {} }, []);
      await t.setRow('a', PAUSED);
      await t.send('k', 'k');
      await t.activate('a', 'k');
      await t.send('k');
      await t.setRow('a', {}, 'skip');
      await t.advanceAll();
      expect(await reasonsOf(t)).toEqual({ not_activated: 2, skipped_to_now: 1 });
    });

    test('that is closed is not counted anymore', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {} }, ['k']);
      for (const name of ['a', 'b']) await t.setRow(name, PAUSED);
      await t.send('k', 'other');
      await t.setRow('a', { route: 'closed' });
      await t.setRow('b', {}, 'skip');
      await t.change({ kind: 'drop', slot: t.slot('b') });
      await t.advanceAll();
      expect(await reasonsOf(t)).toEqual({});
    });
  });

  describe('a part that is held back', () => {
    test('counts when it is routed later', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {}, c: {} }, ['k', 'l']);
      await t.deactivate('c', 'k');
      await t.deactivate('a', 'l');
      await t.deactivate('b', 'l');
      await t.change({ kind: 'meta', field: 'granted', value: '1' });
      await t.send('k', 'l', 'other', '');
      expect(await reasonsOf(t)).toEqual({});
      await t.setRow('c', PAUSED);
      await t.change({ kind: 'meta', field: 'granted', value: '' });
      await t.advanceAll();
      // `l` waits for c. No live subscription is missing `k`.
      expect(await reasonsOf(t)).toEqual({ missing_group_key: 1, not_activated: 2 + 2 });
      expect(await unrouted(t)).toBe(2);
      await t.setRow('c', {});
      await t.advanceAll();
      expect(await reasonsOf(t)).toEqual({ missing_group_key: 1, not_activated: 4 + 2 });
      expect(await unrouted(t)).toBe(2);
    });

    test('counts a wide event once, even with changes between its slices', async () => {
      const { t } = await startPart(redis(), {}, []);
      const names = Array.from({ length: 700 }, (_, i) => `s${i}`);
      for (const name of [...names, 'x', 'y']) await t.setRow(name, {});
      await t.change(...names.map(name => ({ kind: 'on' as const, slot: t.slot(name), groupKey: 'w' })));
      await t.send('w');
      expect(await t.advance()).toMatchObject({ references: 512, hold: 'wide' });
      for (const name of ['s0', 's699', 'x']) await t.setRow(name, PAUSED);
      await t.setRow('s1', { route: 'closed' });
      await t.change({ kind: 'drop', slot: t.slot('s698') });
      await t.advanceAll();
      expect(await reasonsOf(t)).toEqual({ not_activated: 1 });
      for (const name of ['s0', 's699', 'x']) await t.setRow(name, {});
      await t.advanceAll();
      expect(await reasonsOf(t)).toEqual({ not_activated: 2 });
      expect([await live(t), await unrouted(t)]).toEqual(['700', 0]);
    });
  });

  describe('retention', () => {
    test('counts events that expire before they were routed', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {}, c: { route: 'closed' }, d: {} }, ['k']);
      await t.change({ kind: 'meta', field: 'retentionMs', value: '60000' });
      await t.setRow('a', PAUSED);
      await t.send('k');
      await t.change({ kind: 'meta', field: 'granted', value: '0' });
      await t.send('k');
      t.clock.ms += 60_001;
      expect(await sweepAll(t)).toMatchObject({ events: 2, neverRouted: 2 + 2 });
      expect(await reasonsOf(t)).toEqual({ expired: 4 });
    });

    test('does not count subscriptions that received a slice of a wide event', async () => {
      const { t } = await startPart(redis(), {}, []);
      const names = Array.from({ length: 700 }, (_, i) => `s${i}`);
      for (const name of names) await t.setRow(name, {});
      await t.change(...names.map(name => ({ kind: 'on' as const, slot: t.slot(name), groupKey: 'w' })));
      await t.change({ kind: 'meta', field: 'retentionMs', value: '60000' });
      await t.send('w');
      await t.advance();
      t.clock.ms += 60_001;
      expect(await sweepAll(t)).toMatchObject({ events: 1, neverRouted: 188 });
      expect([await reasonsOf(t), await unrouted(t)]).toEqual([{ expired: 188 }, 0]);
    });
  });

  test('each hour has its counts, for as long as they are read', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    t.clock.ms -= t.clock.ms % HOUR_MS;
    const first = t.clock.ms;
    await t.send('other', '');
    t.clock.ms += HOUR_MS;
    await t.send('other', 'other');
    // The clock is set back.
    t.clock.ms -= 1;
    await t.send('other');
    t.clock.ms += 1;
    const counts = async () =>
      (await read(t, '7d'))
        .map(({ startMs, reasons }) => [(startMs - first) / HOUR_MS, reasons.missing_group_key, reasons.not_activated])
        .filter(([, keyless, inactive]) => keyless !== 0 || inactive !== 0);
    expect(await counts()).toEqual([
      [0, 1, 1],
      [1, 0, 3],
    ]);
    expect((await read(t)).map(({ startMs }) => startMs)).toEqual([first, first + HOUR_MS]);
    t.clock.ms += 191 * HOUR_MS;
    await t.send('other');
    expect(await redis().call('hkeys', t.keys.reasons)).toEqual([String(first / HOUR_MS + 1)]);
    expect(await counts()).toEqual([[192, 0, 1]]);
  });

  test('a stream without a part has no reasons', async () => {
    const { t } = await startPart(redis());
    const readReasons = createPartTrafficReader(redis()).readReasons(t.part.tenant, 'another', '1h', t.clock.ms);
    expect((await readReasons).map(({ reasons }) => reasons.not_activated)).toEqual([0, 0]);
  });

  describe('the number of live subscriptions', () => {
    test('follows rows, positions, and catching up', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {}, c: { route: 'paused' }, d: { route: 'closed' } }, ['k']);
      expect(await live(t)).toBe('2');
      await t.setRow('a', { cap: 3 });
      await t.setRow('b', PAUSED);
      await t.setRow('c', {});
      await t.setRow('e', {}, 'behind');
      expect(await live(t)).toBe('2');
      await t.send('k');
      await t.setRow('b', {});
      expect(await live(t)).toBe('2');
      await t.advanceAll();
      expect(await live(t)).toBe('4');
      await t.change({ kind: 'drop', slot: t.slot('e') });
      await t.change({ kind: 'drop', slot: t.slot('e') });
      await t.setRow('d', {});
      expect(await live(t)).toBe('4');
    });

    test('is counted again after data was lost', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {}, c: { route: 'paused' } }, ['k']);
      await redis().call('hdel', t.keys.meta, 'live');
      await t.setRow('a', { cap: 5 });
      expect(await live(t)).toBe('2');
      await redis().call('del', t.keys.subs);
      for (const name of ['a', 'b']) await t.setRow(name, {});
      expect(await live(t)).toBe('2');
    });

    test('is counted again after a lost row was written again', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {} }, ['k']);
      await redis().call('hdel', t.keys.subs, t.slot('b'));
      await t.change({ kind: 'row', slot: t.slot('b'), row: row({}) }, { kind: 'marker' });
      await t.send('k', 'other');
      expect([await live(t), await reasonsOf(t)]).toEqual(['2', { not_activated: 2 }]);
    });
  });
});
