import { describe, expect, test } from 'vitest';
import { createTestPart, event, START_MS } from '../../../test/support/part/part.ts';
import { listenTo } from '../../../test/support/part/pushes.ts';
import { redisClusterUrl, redisUrl } from '../../../test/support/redis/shared.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { HOUR_MS } from '../keys.ts';
import { msOfRef, streamIdOf } from '../lanes/ref.ts';
import { createReadBodies } from './read-bodies.ts';

onEachRedis(redis => {
  const url = () => (redis().cluster ? redisClusterUrl() : redisUrl());
  const refsOf = (answer: Awaited<ReturnType<ReturnType<typeof createTestPart>['ingest']>>) =>
    answer.answer === 'OK' ? answer.events.map(each => (each.answer === 'FULL' ? 'FULL' : each.ref)) : [];

  describe('storing', () => {
    test('an event comes back byte by byte, with the group key, and the slots that it was routed to', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, b: {} }, ['k']);
      const body = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      const [ref = ''] = refsOf(await t.ingest(event('k', { body, meta: '{"t":"ä"}' })));
      expect(msOfRef(ref)).toBe(START_MS);
      const [entry] = await t.log();
      expect(entry).toMatchObject({ id: streamIdOf(ref), groupKey: 'k', meta: '{"t":"ä"}', size: 256 });
      expect(entry?.slots.toSorted()).toEqual([t.slot('a'), t.slot('b')].toSorted());
      const [read] = await createReadBodies(t.client)(t.part, [ref]);
      expect(read?.equals(body)).toBe(true);
    });

    test('refs go up in one millisecond, and when the clock is set back', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      const refs = await t.send('', '', '');
      t.clock.ms -= 5_000;
      refs.push(...(await t.send('')));
      t.clock.ms += 5_001;
      refs.push(...(await t.send('')));
      expect(refs.toSorted()).toEqual(refs);
      expect(new Set(refs).size).toBe(5);
      expect(refs.map(msOfRef)).toEqual([START_MS, START_MS, START_MS, START_MS, START_MS + 1]);
    });

    test('a millisecond that is full goes over into the next one', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      await redis().call('hset', t.keys.meta, 'tail', `${START_MS.toString(16).padStart(11, '0')}ffde`);
      const refs = await t.send('', '');
      expect(refs.map(ref => ref.slice(-4))).toEqual(['ffdf', '0000']);
      expect(refs.map(msOfRef)).toEqual([START_MS, START_MS + 1]);
    });

    test('goes on behind the last event where the tail was lost', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      const [first = ''] = await t.send('');
      await redis().call('hdel', t.keys.meta, 'tail');
      t.clock.ms -= 60_000;
      const [second = ''] = await t.send('');
      expect(second > first).toBe(true);
    });

    test.each([
      ['not ready', { ready: '' }, 'GONE'],
      ['another configuration', { cfgv: 'c2' }, 'STALE'],
      ['closing', { state: 'closing' }, 'CLOSED'],
    ] as const)('stores nothing in a part that is %s', async (_name, fields, answer) => {
      const t = createTestPart(redis());
      await t.setUp({ a: {} }, ['k']);
      for (const [field, value] of Object.entries(fields)) {
        await t.change({ kind: 'meta', field: field as 'ready', value });
      }
      expect(await t.ingest(event('k'))).toEqual({ answer });
      expect(await redis().call('exists', t.keys.log, t.keys.body, t.keys.counts)).toBe(0);
    });

    test('another generation is gone', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      await t.gate({ ...t.part, gen: 'gen2' }, 1, [{ kind: 'begin' }]);
      expect(await t.ingest(event('k'))).toEqual({ answer: 'GONE' });
    });

    test('the quota counts metadata, overhead and references, and refuses what passes it', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, b: {} }, ['k']);
      await t.ingest(event('k', { body: Buffer.alloc(1_000) }));
      const one = Number((await t.hash('meta')).bytes);
      expect(one).toBeGreaterThan(1_000 + 250 + 2 * 100);
      await t.change({ kind: 'meta', field: 'maxBytes', value: String(2 * one) });
      const answer = await t.ingest(
        event('k', { body: Buffer.alloc(1_000) }),
        event('k'),
        event('', { body: Buffer.alloc(0) }),
      );
      expect(refsOf(answer).slice(1)).toEqual(['FULL', 'FULL']);
      expect((await t.hash('meta')).bytes).toBe(String(2 * one));
      expect((await t.log()).map(({ cost }) => cost)).toEqual([one, one]);
    });
  });

  describe("a sender's id", () => {
    test('is stored once, in one call and in the next ones', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {} }, ['k']);
      const answer = await t.ingest(
        event('k', { senderId: 'x' }),
        event('k', { senderId: 'x' }),
        event('k', { senderId: 'y' }),
      );
      const [ref, again, other] = refsOf(answer);
      expect(again).toBe(ref);
      expect(other).not.toBe(ref);
      t.clock.ms += HOUR_MS;
      const third = await t.ingest(event('k', { senderId: 'x' }));
      expect(third).toMatchObject({ events: [{ answer: 'DUP', ref }] });
      expect(await t.log()).toHaveLength(2);
      expect((await t.counts('a'))[1]).toBe(2);
    });

    test('is known for 24 hours, by the event that had it', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      const [ref] = refsOf(await t.ingest(event('', { senderId: 'x' })));
      t.clock.ms += 24 * HOUR_MS - 1;
      expect(await t.ingest(event('', { senderId: 'x' }))).toMatchObject({ events: [{ answer: 'DUP', ref }] });
      t.clock.ms += 1;
      expect(await t.ingest(event('', { senderId: 'x' }))).toMatchObject({ events: [{ answer: 'OK' }] });
    });

    test('is found after the clock was set back', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      const [ref] = refsOf(await t.ingest(event('', { senderId: 'x' })));
      t.clock.ms -= HOUR_MS;
      expect(await t.ingest(event('', { senderId: 'x' }))).toMatchObject({ events: [{ answer: 'DUP', ref }] });
    });

    test('lies in a key of its hour, which does not expire; ids of ours need none', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      await t.ingest(event(''));
      const hour = Math.floor(START_MS / HOUR_MS);
      expect((await t.hash('meta')).ids).toBeUndefined();
      await t.ingest(event('', { senderId: 'x' }));
      expect((await t.hash('meta')).ids).toBe(`${hour} ${hour}`);
      t.clock.ms += 2 * HOUR_MS;
      await t.ingest(event('', { senderId: 'y' }));
      expect((await t.hash('meta')).ids).toBe(`${hour} ${hour + 2}`);
      expect(await redis().call('pttl', t.keys.ids(hour))).toBe(-1);
      expect(await redis().call('hlen', t.keys.ids(hour))).toBe(1);
    });
  });

  describe('routing', () => {
    test('goes where the key is active and the subscription is live, and nowhere else', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, paused: { route: 'paused' }, closed: { route: 'closed' }, b: {} }, ['k', 'l']);
      await t.deactivate('b', 'k');
      await t.send('k', 'l', 'other', '');
      const routed = await Promise.all(['a', 'paused', 'closed', 'b'].map(async name => (await t.counts(name))[1]));
      expect(routed).toEqual([2, 0, 0, 1]);
      expect((await t.log()).map(({ slots }) => slots)).toEqual([[t.slot('a')], expect.any(Array), [], []]);
      expect((await t.hash('meta')).out).toMatch(/ 0 0 2$/);
    });

    test('charges each reference once, by the size of the body, and never a duplicate', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, b: {} }, ['k']);
      const body = Buffer.alloc(16_385);
      await t.ingest(event('k', { body, senderId: 'x' }), event('k', { body, senderId: 'x' }), event('none', { body }));
      expect((await t.hash('meta')).used).toBe('4');
    });

    test('more than 128 slots of a key lie in several fields, and all get the event', async () => {
      const t = createTestPart(redis());
      const names = Array.from({ length: 300 }, (_, i) => `s${i}`);
      await t.setUp(Object.fromEntries(names.map(name => [name, {}])), ['k']);
      const fields = Object.keys(await t.hash('keys'));
      expect(fields.toSorted()).toEqual(['', 'k', 'k\0' + '2', 'k\0' + '3']);
      await t.send('k');
      expect((await t.members('pending')).length).toBe(300);
      for (const name of names.slice(0, 170)) await t.deactivate(name, 'k');
      await t.send('k');
      expect((await t.members('pending')).length).toBe(430);
      for (const name of names.slice(170)) await t.deactivate(name, 'k');
      expect(Object.keys(await t.hash('keys'))).toEqual(['']);
    });

    test('takes as many events as make 1,000 references, and leaves the others to the next call', async () => {
      const t = createTestPart(redis());
      const names = Array.from({ length: 400 }, (_, i) => `s${i}`);
      await t.setUp(Object.fromEntries(names.map(name => [name, {}])), ['k']);
      const answer = await t.ingest(event('k'), event('k'), event('k'), event('k'));
      expect(refsOf(answer)).toHaveLength(2);
      expect((await t.members('pending')).length).toBe(800);
      expect(await t.log()).toHaveLength(2);
    });
  });

  describe('holding back', () => {
    test('stores without routing while the activations are not whole', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {} }, ['k']);
      const [before] = await t.send('k');
      await redis().call('hdel', t.keys.keys, '');
      const [ref] = await t.send('k');
      expect(await t.hash('meta')).toMatchObject({ hold: 'gates', pos: before, tail: ref });
      await t.change({ kind: 'marker' });
      await t.send('k');
      expect((await t.counts('a'))[1]).toBe(1);
      expect((await t.hash('meta')).pos).toBe(before);
    });

    test('routes as far as the grant reaches, and stands before the first event that it does not pay', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, b: {} }, ['k']);
      await t.change({ kind: 'meta', field: 'granted', value: '5' });
      const refs = await t.send('k', 'k', 'k', 'k');
      expect(await t.hash('meta')).toMatchObject({ hold: 'tokens', used: '4', pos: refs[1], tail: refs[3] });
      expect((await t.counts('a'))[1]).toBe(2);
    });

    test('stores an event with more references than a call may write', async () => {
      const t = createTestPart(redis());
      const slots = Array.from({ length: 1_001 }, (_, i) => i.toString(32).padStart(8, '0'));
      await t.setUp({}, []);
      for (let at = 0; at < slots.length; at += 200) {
        await t.change(...slots.slice(at, at + 200).map(slot => ({ kind: 'on' as const, slot, groupKey: 'k' })));
      }
      const answer = await t.ingest(event('k'));
      expect(refsOf(answer)).toHaveLength(1);
      expect((await t.hash('meta')).hold).toBe('wide');
      expect(await redis().call('exists', t.keys.pending)).toBe(0);
    });
  });

  describe('pushing', () => {
    const pushing = () => {
      const t = createTestPart(redis());
      return { t, d: t.dispatcher('d1'), listen: () => listenTo(redis(), url(), t.part) };
    };

    test('claims an idle lane for a dispatcher that is ready, and sends event and claim in one message', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: {}, b: { unordered: true } }, ['k']);
      await d.exchange();
      const pushes = await listen();
      const [ref = ''] = await t.send('k');
      const [push] = await pushes.take();
      pushes.close();
      expect(push).toMatchObject({ dispatcher: 'd1', pushed: 2, waiting: false, nowMs: START_MS, behind: [] });
      const [only] = push?.events ?? [];
      expect(only).toMatchObject({ ref, groupKey: 'k', meta: '{"s":"/x"}', size: 4 });
      expect(only?.body?.toString()).toBe('body');
      const lanes = only?.claims.map(({ lane }) => lane).toSorted();
      expect(lanes).toEqual([`${t.slot('a')}k`, `${t.slot('b')}k\0${ref}`].toSorted());
      expect(Object.keys(await t.hash('claims')).toSorted()).toEqual(lanes);
      expect(await t.members('pending')).toEqual([]);
      expect((await t.hash('ready')).d1).toMatch(/^\d+ 1000 2 2 /);
    });

    test('leaves out a body of more than 16 KiB', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: {} }, ['k']);
      await d.exchange();
      const pushes = await listen();
      await t.ingest(event('k', { body: Buffer.alloc(16_384, 1) }), event('k2'));
      await t.activate('a', 'k2');
      const [ref = ''] = refsOf(await t.ingest(event('k2', { body: Buffer.alloc(16_385, 2) })));
      const events = (await pushes.take()).flatMap(push => push.events);
      pushes.close();
      expect(events.map(({ size, body }) => [size, body?.length])).toEqual([
        [16_384, 16_384],
        [16_385, undefined],
      ]);
      const [body] = await createReadBodies(t.client)(t.part, [ref]);
      expect(body?.equals(Buffer.alloc(16_385, 2))).toBe(true);
    });

    test('says which claimed lanes have more behind them now, once', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: {} }, ['k']);
      await d.exchange();
      const pushes = await listen();
      await t.send('k');
      await t.send('k', 'k');
      await t.send('k');
      const messages = await pushes.take();
      pushes.close();
      expect(messages.map(push => push.behind)).toEqual([[], [`${t.slot('a')}k`]]);
      expect(messages.map(push => push.events.length)).toEqual([1, 0]);
    });

    test('gives to the dispatcher with most room, in claims, while there is room in bytes', async () => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: { cap: 1_000 } }, ['k', 'l', 'm', 'n']);
      await d.exchange(0, { limit: 1 });
      await t.dispatcher('d2').exchange(0, { limit: 5, roomBytes: 100 });
      const pushes = await listen();
      const keys = ['k', 'l', 'm', 'n'];
      for (const key of keys) await t.ingest(event(key, { body: Buffer.alloc(80) }));
      const messages = await pushes.take();
      pushes.close();
      // What waits is said once, as long as something of the subscription is under way.
      expect(messages.map(push => [push.dispatcher, push.waiting])).toEqual([
        ['d2', false],
        ['d1', false],
        [undefined, true],
      ]);
      expect(await t.members('waiting')).toHaveLength(2);
    });

    test('gives nothing to one that was not heard of for its time', async () => {
      const { t, d } = pushing();
      await t.setUp({ a: {} }, ['k']);
      await d.exchange();
      t.clock.ms += 3_000;
      await t.send('k');
      expect(await t.hash('claims')).toEqual({});
      expect(await t.members('turns')).toEqual([t.slot('a')]);
    });

    test.each([
      ['twice the cap is claimed', { cap: 1 }, 2],
      ['the subscription is not sent to', { send: 'held' as const }, 0],
      ['attempts are paced', { maxPerSecond: 5 }, 0],
    ])('lets lanes wait where %s', async (_name, fields, claimed) => {
      const { t, d, listen } = pushing();
      await t.setUp({ a: fields }, ['k', 'l', 'm', 'n']);
      await d.exchange();
      const pushes = await listen();
      await t.send('k', 'l', 'm', 'n');
      const [push] = await pushes.take();
      pushes.close();
      expect(Object.keys(await t.hash('claims'))).toHaveLength(claimed);
      expect(await t.members('waiting')).toHaveLength(4 - claimed);
      expect(push?.waiting ?? false).toBe(!('send' in fields));
    });

    test('lets nothing pass lanes that wait', async () => {
      const { t, d } = pushing();
      await t.setUp({ a: {} }, ['k', 'l']);
      await t.send('k');
      await d.exchange(0);
      await t.send('l');
      expect(await t.hash('claims')).toEqual({});
      const { claims } = await d.exchange();
      expect(claims.map(({ lane }) => lane.slice(8))).toEqual(['k', 'l']);
    });

    test('pushes no more where nobody listened', async () => {
      const { t, d } = pushing();
      await t.setUp({ a: {} }, ['k', 'l']);
      await d.exchange();
      await t.send('k');
      await t.send('l');
      expect(Object.keys(await t.hash('claims'))).toEqual([`${t.slot('a')}k`]);
    });
  });
});
