import { describe, expect, test } from 'vitest';
import { event, expectEmpty, START_MS, startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { recordsBucketOf } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';
import { sweepAll } from './testing/sweep-all.ts';

const HOUR_MS = 3_600_000;
const RETENTION_MS = 2 * HOUR_MS;

onEachRedis(redis => {
  async function start(...args: Parameters<typeof startPart> extends [unknown, ...infer Rest] ? Rest : never) {
    const world = await startPart(redis(), ...args);
    await world.t.change({ kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) });
    return world;
  }
  const exists = async (...keys: string[]) => Promise.all(keys.map(key => redis().call('exists', key)));

  describe('ids of senders', () => {
    test('are removed a day after their hour, and not before; ids used for comparison are kept', async () => {
      const { t } = await start();
      const hour = Math.floor(START_MS / HOUR_MS);
      await t.ingest(event('k', { senderId: 'old' }));
      t.clock.ms += 20 * HOUR_MS;
      await t.ingest(event('k', { senderId: 'young' }));
      t.clock.ms = (hour + 1 + 25) * HOUR_MS - 1;
      expect((await sweepAll(t)).dueInMs).toBe(1);
      expect(await exists(t.keys.ids(hour), t.keys.ids(hour + 20))).toEqual([1, 1]);
      t.clock.ms += 1;
      await sweepAll(t);
      expect(await exists(t.keys.ids(hour), t.keys.ids(hour + 20))).toEqual([0, 1]);
      expect(await t.ingest(event('k', { senderId: 'young' }))).toMatchObject({ events: [{ answer: 'DUP' }] });
      t.clock.ms += 30 * HOUR_MS;
      await sweepAll(t);
      expect((await t.hash('meta')).ids).toBeUndefined();
      expect(await t.ingest(event('k', { senderId: 'young' }))).toMatchObject({ events: [{ answer: 'OK' }] });
    });
  });

  describe('records', () => {
    test.each([
      [RETENTION_MS, 10 * HOUR_MS],
      [7 * 24 * HOUR_MS, (14 * 24 + 6) * HOUR_MS],
      [30 * 24 * HOUR_MS, (30 * 24 + 6) * HOUR_MS],
    ])(
      'with a retention of %i ms, are removed %i ms after the end of their bucket, like names in lists',
      async (retentionMs, keptMs) => {
        const { t, d } = await start();
        await t.change({ kind: 'meta', field: 'retentionMs', value: String(retentionMs) });
        const [ref] = (await t.send('k')) as [string];
        await sweepAll(t);
        const { claims } = await d.exchange();
        for (const claim of claims) d.end(claim, 'dead', { reason: '500' });
        await d.exchange();
        const bucket = recordsBucketOf(msOfRef(ref));
        t.clock.ms = (bucket + 1) * 6 * HOUR_MS + keptMs - 1;
        await sweepAll(t);
        expect(await t.records(ref)).toHaveLength(1);
        t.clock.ms += 1;
        await sweepAll(t);
        expect(await t.records(ref)).toHaveLength(0);
        t.clock.ms += 6 * HOUR_MS;
        await sweepAll(t);
        expect(await t.members('final')).toEqual([]);
      },
    );
  });

  test('a shorter retention removes the events before their records, and leaves no records', async () => {
    const { t, d } = await start();
    const retain = (ms: number) => t.change({ kind: 'meta', field: 'retentionMs', value: String(ms) });
    await retain(72 * HOUR_MS);
    const state = {};
    const refs: string[] = [];
    for (let hour = 0; hour < 80; hour++) {
      refs.push(...(await t.send('k')));
      for (const claim of (await d.exchange()).claims) d.end(claim, 'dead', { reason: '500' });
      await d.exchange(0);
      t.clock.ms += HOUR_MS;
      await sweepAll(t, state);
    }
    await retain(HOUR_MS);
    await sweepAll(t, state);
    // The events still exist because a part only searches for expired events once a minute.
    const stored = refs.slice(-(await t.log()).length);
    expect(stored.length).toBeGreaterThan(70);
    for (const ref of stored) expect(await t.records(ref)).toHaveLength(1);
    for (let days = 0; days < 40; days++) {
      t.clock.ms += 24 * HOUR_MS;
      await sweepAll(t, state);
    }
    const buckets = [...new Set(refs.map(ref => recordsBucketOf(msOfRef(ref))))];
    expect(await exists(...buckets.map(t.keys.records))).toEqual(buckets.map(() => 0));
  });

  describe('a deleted subscription', () => {
    test('with deletionPolicy Delete only removes its waiting events', async () => {
      const { t, d } = await start({ a: {}, b: {} }, ['k', 'l', 'm', 'n']);
      await t.send('k', 'l', 'm', 'n');
      const { claims } = await d.exchange(3);
      for (const claim of claims) {
        d.end(claim, 'failed', { dueMs: t.clock.ms + HOUR_MS, reason: '500', responseBody: Buffer.from('no') });
      }
      await d.exchange(2);
      await t.deactivate('a', 'm');
      await t.change({ kind: 'drop', slot: t.slot('a'), how: 'delete' });
      for (const claim of d.held.values()) d.end(claim, 'failed', { dueMs: t.clock.ms + HOUR_MS, reason: '500' });
      await sweepAll(t);
      await d.exchange(0);
      t.clock.ms += 60_000;
      await sweepAll(t);
      const slot = t.slot('a');
      const { pending, waiting, retries, turns, final, counts, tries, lanes, off, health, answers } = t.keys;
      for (const key of [pending, waiting, retries, turns, final]) {
        const members = (await redis().call('zrange', key, 0, -1)) as string[];
        expect(members.filter(each => each.startsWith(slot))).toEqual([]);
      }
      for (const key of [counts, tries, lanes, off, health, answers]) {
        const fields = Object.keys(await redis().readHash(key));
        expect(fields.filter(each => each.startsWith(slot))).toEqual([]);
      }
      expect((await t.members('pending')).filter(each => each.startsWith(t.slot('b')))).toHaveLength(4);
      t.clock.ms += HOUR_MS;
      expect((await d.exchange(64)).claims).toHaveLength(4);
    });

    test('removes its dead letters completely', async () => {
      const { t, d } = await start({ a: {}, b: {} }, ['k']);
      await t.send('k');
      for (const claim of (await d.exchange()).claims) d.end(claim, 'dead', { reason: '500', attempted: 'HttpError' });
      await d.exchange(0);
      await t.change({ kind: 'drop', slot: t.slot('a'), how: 'delete' });
      await sweepAll(t);
      expect(await redis().call('hkeys', t.keys.deadLetters)).toEqual([t.slot('b')]);
    });

    test('with deletionPolicy Retain is kept until the end of the retention', async () => {
      const { t } = await start();
      await t.send('k');
      await t.change({ kind: 'drop', slot: t.slot('a') });
      t.clock.ms += RETENTION_MS - 1;
      await sweepAll(t);
      expect(await t.members('pending')).toHaveLength(1);
      t.clock.ms += 2;
      await sweepAll(t);
      await expectEmpty(redis(), t);
      expect(await exists(t.keys.counts, t.keys.dropped)).toEqual([0, 0]);
    });

    test('is removed in several calls if it has many events', async () => {
      const { t } = await start({ a: { send: 'held' } }, ['k']);
      for (let i = 0; i < 20; i++) await t.ingest(...Array.from({ length: 64 }, () => event('k')));
      await t.change({ kind: 'drop', slot: t.slot('a'), how: 'delete' });
      expect((await sweepAll(t)).calls).toBeGreaterThan(3);
      await expectEmpty(redis(), t);
    });

    test('keeps its waiting events if it is recreated', async () => {
      const { t, d } = await start();
      await t.send('k');
      await t.change({ kind: 'drop', slot: t.slot('a'), how: 'delete' });
      await t.setRow('a', {});
      await sweepAll(t);
      expect(await exists(t.keys.dropped)).toEqual([0]);
      expect((await d.exchange()).claims).toHaveLength(1);
    });

    test('is found even if this part has not removed it', async () => {
      const { t } = await start();
      await t.send('k');
      await redis().call('hdel', t.keys.subs, t.slot('a'));
      t.clock.ms += 7 * HOUR_MS;
      await sweepAll(t);
      await expectEmpty(redis(), t);
      expect(await exists(t.keys.counts)).toEqual([0]);
    });
  });

  test('a test event that was never sent expires, with a record', async () => {
    const { t } = await start({ a: { send: 'held' } });
    const ref = `${START_MS.toString(16).padStart(11, '0')}ffe0`;
    const slot = t.slot('a');
    await t.send('k');
    await redis().call('zadd', t.keys.pending, '0', `${slot}\0${ref}`);
    await redis().call('hset', t.keys.lanes, slot, `w0${ref.slice(0, 11)}`);
    await redis().call('zadd', t.keys.waiting, '0', `${slot}0${ref.slice(0, 11)}`);
    await sweepAll(t);
    expect(await t.members('pending')).toHaveLength(2);
    t.clock.ms += 7 * HOUR_MS;
    expect(await sweepAll(t)).toMatchObject({ expired: 2 });
    expect((await t.records(ref)).map(({ outcome }) => outcome)).toEqual(['expired']);
    expect((await t.counts('a'))[5]).toBe(1);
    await expectEmpty(redis(), t);
  });

  test('removes the mark of a deactivated key without open events', async () => {
    const { t, d } = await start({ a: {} }, ['k', 'l']);
    await t.send('k');
    await d.exchange();
    await t.deactivate('a', 'k');
    await t.deactivate('a', 'l');
    expect(Object.keys(await t.hash('off'))).toHaveLength(2);
    for (const claim of d.held.values()) d.end(claim);
    await d.exchange();
    t.clock.ms += 7 * HOUR_MS;
    await sweepAll(t);
    expect(await t.hash('off')).toEqual({});
  });

  test('a part without events only has to remove its records', async () => {
    const { t, d } = await start();
    await t.send('k');
    for (const claim of (await d.exchange()).claims) d.end(claim);
    await d.exchange();
    t.clock.ms += RETENTION_MS + 1;
    await sweepAll(t);
    const { dueInMs } = await sweepAll(t);
    expect(dueInMs).toBeGreaterThan(HOUR_MS);
    expect(dueInMs).toBeLessThanOrEqual(6 * HOUR_MS);
  });
});
