import { describe, expect, test } from 'vitest';
import {
  createTestPart,
  event,
  expectEmpty,
  READY_MS,
  row,
  START_MS,
  startPart,
  type TestPart,
} from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

onEachRedis(redis => {
  const start = (subs?: Parameters<typeof startPart>[1], groupKeys?: string[]) => startPart(redis(), subs, groupKeys);

  describe('claiming', () => {
    test('returns the first event of a waiting lane with metadata and body, and the time for its age', async () => {
      const { t, d } = await start();
      const [ref] = await t.send('k');
      const answer = await d.exchange();
      expect(answer).toMatchObject({
        answer: 'OK',
        nowMs: START_MS,
        more: false,
        answers: [],
        lapsed: [],
        disabled: [],
      });
      expect(answer.events).toMatchObject([{ ref, groupKey: 'k', meta: '{"s":"/x"}', size: 4 }]);
      expect(answer.events[0]?.body?.toString()).toBe('body');
      expect(answer.claims).toEqual([
        { slot: t.slot('a'), lane: `${t.slot('a')}k`, ref, behind: false, attempts: 0, lapses: 0, replay: undefined },
      ]);
      expect((await d.exchange()).claims).toEqual([]);
    });

    test('returns the text of each event, anywhere in the log, and none for a removed event', async () => {
      const groupKeys = Array.from({ length: 20 }, (_, i) => `g${i}`);
      const { t, d } = await start({ a: { cap: 50 } }, groupKeys);
      // Claimed events that follow each other, and other events in between. 0, 1, 2, ... of them do not have a
      // subscriber.
      const sent = groupKeys.flatMap((groupKey, i) => [groupKey, ...Array.from({ length: i % 5 }, () => 'nobody')]);
      const refs = await t.send(...sent);
      const expected = sent.flatMap((groupKey, i) => (groupKey === 'nobody' ? [] : [[refs[i], groupKey]]));
      const gone = [0, 9, 19];
      const log = await t.log();
      for (const i of gone) {
        const at = refs.indexOf(expected[i]?.[0] as string);
        await redis().call('xdel', t.keys.log, log[at]?.id as string);
      }
      const { events } = await d.exchange();
      const got = events.toSorted((a, b) => (a.ref < b.ref ? -1 : 1));
      expect(got.map(({ ref, groupKey }) => [ref, groupKey])).toEqual(expected);
      expect(got.flatMap(({ size, meta }, i) => (size === 4 && meta === '{"s":"/x"}' ? [] : [i]))).toEqual(gone);
    });

    test('returns only the first event of a lane, and whether there are more', async () => {
      const { t, d } = await start();
      const [first] = await t.send('k', 'k', 'l');
      const { claims } = await d.exchange();
      expect(claims.map(({ lane, behind }) => [lane.slice(8), behind])).toEqual([
        ['k', true],
        ['l', false],
      ]);
      expect(claims[0]?.ref).toBe(first);
    });

    test('uses the waiting time of lanes, and takes turns between subscriptions', async () => {
      const keys = Array.from({ length: 20 }, (_, i) => `g${i}`);
      const { t, d, keyOf } = await start({ a: { cap: 100 } }, [...keys, 'late']);
      for (const key of keys.toReversed()) {
        await t.send(key);
        t.clock.ms += 1;
      }
      expect((await d.exchange(3)).claims.map(({ lane }) => keyOf(lane))).toEqual(['g19', 'g18', 'g17']);
      await t.setRow('b', { cap: 100 });
      await t.activate('b', 'late');
      // The dispatcher has no room, so nothing is pushed to it.
      await d.exchange(0, { limit: 0 });
      await t.send('late');
      const slots = (await d.exchange(4)).claims.map(({ slot }) => slot);
      expect(slots.filter(slot => slot === t.slot('b'))).toHaveLength(1);
    });

    test('does not exceed twice the cap of a subscription, or the number and limit of the dispatcher', async () => {
      const { t, d } = await start({ a: { cap: 1 }, b: {} });
      await t.send('k', 'l', 'm', 'n');
      const first = await d.exchange();
      expect(first.claims.filter(({ slot }) => slot === t.slot('a'))).toHaveLength(2);
      const other = createTestPart(redis());
      await other.setUp({ a: { cap: 100 } }, ['k', 'l', 'm', 'n']);
      await other.send('k', 'l', 'm', 'n');
      const e = other.dispatcher('d1');
      expect(await e.exchange(1)).toMatchObject({ claims: { length: 1 }, more: true });
      expect((await e.exchange(64, { limit: 3 })).claims).toHaveLength(2);
      expect((await e.exchange(64, { limit: 3 })).claims).toHaveLength(0);
    });

    test('continues with events held back by the limit when an attempt ends, for any dispatcher', async () => {
      const { t, d } = await start({ a: { cap: 1 } });
      await t.send('k', 'l', 'm');
      const { claims } = await d.exchange();
      expect(claims).toHaveLength(2);
      expect((await t.dispatcher('d2').exchange()).claims).toHaveLength(0);
      d.end(claims[0] as (typeof claims)[0]);
      await d.exchange(0);
      expect((await t.dispatcher('d2').exchange()).claims).toHaveLength(1);
    });

    test('returns an event that was removed from the log without its text, to be ended', async () => {
      const { t, d } = await start();
      await t.send('k');
      await redis().call('del', t.keys.log);
      const { events, claims } = await d.exchange();
      expect(events).toMatchObject([{ groupKey: 'k', size: undefined, body: undefined }]);
      expect(claims[0]?.lane).toBe(`${t.slot('a')}k`);
      d.end(claims[0] as (typeof claims)[0], 'expired', { reason: 'retention' });
      expect((await d.exchange()).answers).toEqual(['done']);
      expect((await t.counts('a')).slice(3)).toEqual([0, 0, 1]);
      await expectEmpty(redis(), t);
    });

    test('without order, each event has a separate lane', async () => {
      const { t, d } = await start({ a: { unordered: true } });
      const refs = await t.send('k', 'k', 'k');
      const { claims } = await d.exchange();
      expect(claims.map(({ lane }) => lane)).toEqual(refs.map(ref => `${t.slot('a')}k\0${ref}`));
      for (const claim of claims.toReversed()) d.end(claim);
      expect((await d.exchange()).answers).toEqual(['done', 'done', 'done']);
      await expectEmpty(redis(), t);
    });

    test.each([{}, { unordered: true }])('does not return lost waiting lanes: %o', async row => {
      const { t, d } = await start({ a: row });
      await t.send('k', 'l');
      const [lost = ''] = await t.members('pending');
      await redis().call('zrem', t.keys.pending, lost);
      const { claims } = await d.exchange();
      expect(claims.map(({ lane }) => lane.slice(8, 9))).toEqual(['l']);
      d.end(claims[0] as (typeof claims)[0]);
      await d.exchange();
      expect([await t.members('waiting'), await t.hash('lanes')]).toEqual([[], {}]);
      // The lane is idle, so its next event is pushed.
      await t.send('k');
      expect(Object.keys(await t.hash('claims'))).toEqual([expect.stringMatching(/^.{8}k/)]);
    });

    test('does not return events of a subscription that is not open for sending, until it is', async () => {
      const { t, d } = await start();
      await t.send('k');
      await t.setRow('a', { send: 'held' });
      expect((await d.exchange()).claims).toEqual([]);
      await t.send('l');
      await t.setRow('a', { send: 'open' });
      expect((await d.exchange()).claims).toHaveLength(2);
    });
  });

  describe('retries', () => {
    test('leave a quarter to first attempts, which come first', async () => {
      const keys = Array.from({ length: 12 }, (_, i) => `g${i}`);
      const { t, d, keyOf } = await start({ a: { cap: 4 } }, keys);
      await t.send(...keys.slice(0, 8));
      for (const claim of (await d.exchange()).claims) d.end(claim, 'failed', { dueMs: t.clock.ms + 5 });
      await d.exchange();
      t.clock.ms += 5;
      const retries = (await d.exchange()).claims;
      expect(retries).toHaveLength(6);
      await t.send(...keys.slice(8));
      const firsts = (await d.exchange()).claims.map(({ lane }) => keyOf(lane));
      expect(firsts).toHaveLength(2);
      for (const key of firsts) expect(keys.slice(8)).toContain(key);
    });
  });

  test('reports that there are more if more slots are waiting than a call reads', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `s${i}`);
    const { t, d } = await start(Object.fromEntries(names.map(name => [name, { cap: 1 }])), ['k']);
    await t.send('k');
    const first = await d.exchange(64);
    expect([first.claims.length, first.more]).toEqual([32, true]);
    const second = await d.exchange(64);
    expect([second.claims.length, second.more]).toEqual([8, false]);
  });

  test('continues if all slots that were read are stopped', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `s${i}`);
    const { t, d } = await start(Object.fromEntries(names.map(name => [name, {}])), ['k']);
    await t.send('k');
    const bySlot = names.toSorted((a, b) => (t.slot(a) < t.slot(b) ? -1 : 1));
    await t.change(
      ...bySlot.slice(0, 32).map(name => ({ kind: 'row' as const, slot: t.slot(name), row: row({ send: 'held' }) })),
    );
    const first = await d.exchange(64);
    expect([first.claims.length, first.more]).toEqual([0, true]);
    expect((await d.exchange(64)).claims).toHaveLength(8);
  });

  describe('the claims of a dispatcher', () => {
    const readyOf = async (t: TestPart, name = 'd1') => ((await t.hash('ready'))[name] ?? '').split(' ').map(Number);

    test('are the claims that it reports, and claims pushed since then, so errors are corrected', async () => {
      const { t, d } = await start({ a: {} });
      await d.exchange(0);
      await t.send('k', 'l');
      const answer = await d.exchange(0);
      expect(answer.pushed).toBe(2);
      expect((await readyOf(t)).slice(0, 6)).toEqual([
        t.clock.ms + READY_MS,
        1_000,
        2,
        2,
        expect.any(Number),
        answer.bytes,
      ]);
      expect(answer.bytes).toBeGreaterThan(0);
      await d.exchange(0);
      expect((await readyOf(t))[2]).toBe(0);
      const own = await t.own('d1');
      for (const claim of own) d.end(claim, 'released');
      const { claims } = await d.exchange();
      expect(claims).toHaveLength(2);
      expect((await readyOf(t))[2]).toBe(2);
    });

    test('reduce the room in bytes by data that may be unread', async () => {
      const { t, d } = await start({ a: {} });
      await d.exchange(0, { roomBytes: 5_000 });
      await t.ingest(event('k', { body: Buffer.alloc(1_000) }));
      const bytes = 5_000 - ((await readyOf(t))[4] as number);
      expect(bytes).toBe(5_000);
    });

    test('a fifth dispatcher ends its attempts, and does not claim anything until one of the four is removed', async () => {
      const { t, d } = await start();
      for (const name of ['d1', 'd2', 'd3', 'd4']) await t.dispatcher(name).exchange(0);
      await t.send('k');
      const fifth = t.dispatcher('d5');
      expect(await fifth.exchange()).toMatchObject({ answer: 'HELD', claims: [] });
      t.clock.ms += READY_MS;
      expect(await fifth.exchange()).toMatchObject({ answer: 'OK', lapsed: ['d1', 'd2', 'd3', 'd4'] });
      expect(d.held.size).toBe(0);
    });

    test('without control data, attempts are ended, and nothing is claimed', async () => {
      const { t, d } = await start();
      await t.send('k', 'l');
      const { claims } = await d.exchange(1);
      await t.change({ kind: 'meta', field: 'ready', value: '' });
      d.end(claims[0] as (typeof claims)[0]);
      expect(await d.exchange()).toMatchObject({ answer: 'CLOSED', answers: ['done'], claims: [] });
      expect(await t.counts('a')).toEqual([0, 2, 1, 1, 0, 0]);
    });

    test('another generation does not exist', async () => {
      const { t, d } = await start();
      await t.gate({ ...t.part, gen: 'gen2' }, 1, [{ kind: 'begin' }]);
      await expect(d.exchange()).rejects.toThrow('GONE');
      expect(await t.own('d1')).toEqual([]);
      expect(await t.evict('d1')).toEqual({ answer: 'GONE' });
    });
  });
});
