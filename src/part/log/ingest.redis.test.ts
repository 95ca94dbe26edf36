import { describe, expect, test } from 'vitest';
import { createTestPart, event, START_MS } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { HOUR_MS } from '../keys.ts';
import { msOfRef, refOfMs, streamIdOf } from '../lanes/ref.ts';
import { eventIdOf } from './event-id.ts';
import { createReadBodies } from './read-bodies.ts';

onEachRedis(redis => {
  const refsOf = (answer: Awaited<ReturnType<ReturnType<typeof createTestPart>['ingest']>>) =>
    answer.answer === 'OK' ? answer.events.map(each => ('ref' in each ? each.ref : each.answer)) : [];

  describe('storing', () => {
    test('returns an event unchanged, with its group key and slots', async () => {
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

    test('refs increase within a millisecond, and after the clock was set back', async () => {
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

    test('uses the next millisecond if one is full', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      await redis().call('hset', t.keys.meta, 'tail', `${START_MS.toString(16).padStart(11, '0')}ffde`);
      const refs = await t.send('', '');
      expect(refs.map(ref => ref.slice(-4))).toEqual(['ffdf', '0000']);
      expect(refs.map(msOfRef)).toEqual([START_MS, START_MS + 1]);
    });

    test('continues after the last event if the tail was lost', async () => {
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
    ] as const)('does not store anything in a part that is %s', async (_name, fields, answer) => {
      const t = createTestPart(redis());
      await t.setUp({ a: {} }, ['k']);
      for (const [field, value] of Object.entries(fields)) {
        await t.change({ kind: 'meta', field: field as 'ready', value });
      }
      expect(await t.ingest(event('k'))).toEqual({ answer });
      expect(await redis().call('exists', t.keys.log, t.keys.body, t.keys.counts)).toBe(0);
    });

    test('another generation does not exist', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      await t.gate({ ...t.part, gen: 'gen2' }, 1, [{ kind: 'begin' }]);
      expect(await t.ingest(event('k'))).toEqual({ answer: 'GONE' });
    });

    test('the quota includes metadata, overhead, and references', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, b: {} }, ['k']);
      await t.ingest(event('k', { body: Buffer.alloc(1_000) }));
      const one = Number((await t.hash('meta')).bytes);
      expect(one).toBeGreaterThan(1_000 + 250 + 2 * 400);
      await t.change({ kind: 'meta', field: 'maxBytes', value: String(2 * one) });
      const answer = await t.ingest(
        event('k', { body: Buffer.alloc(1_000) }),
        event('k'),
        event('', { body: Buffer.alloc(0) }),
      );
      expect(refsOf(answer).slice(1)).toEqual(['FULL', 'FULL']);
      expect((await t.hash('meta')).bytes).toBe(String(2 * one));
      // Open deliveries are given back earlier.
      expect((await t.log()).map(({ cost }) => cost)).toEqual([one - 900, one - 900]);
    });

    test.each([20_474, 81_910])('a body of %i bytes uses a single block of memory', async size => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      await t.ingest(...[-500, 0, 500].map(change => event('', { body: Buffer.alloc(size + change) })));
      const [shorter = 0, same = 0, longer = 0] = (await t.log()).map(({ cost }) => cost);
      expect([same - shorter, longer > same]).toEqual([0, true]);
    });

    test('counts the references of an event that is held back once, when they are written', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, b: {} }, ['k']);
      await t.send('k');
      const one = Number((await t.hash('meta')).bytes);
      await t.change({ kind: 'meta', field: 'granted', value: '2' });
      await t.send('k');
      expect(Number((await t.hash('meta')).bytes)).toBe(2 * one - 2 * 495);
      await t.change({ kind: 'meta', field: 'granted', value: '4' });
      expect(await t.advanceAll()).toBe(2);
      expect(Number((await t.hash('meta')).bytes)).toBe(2 * one + 60);
    });
  });

  describe("a sender's id", () => {
    test('is stored once, in one call and in the following calls', async () => {
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

    test('in the format of Sluice is a duplicate of the event with this id, or stored for none', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {} }, ['k']);
      const [own, named] = refsOf(
        await t.ingest(event('k'), event('k', { senderId: 'x', meta: '{"i":"x","s":"/x"}' })),
      ) as [string, string];
      const other = eventIdOf({ ...t.part, gen: 'gen2' }, own);
      const ids = [
        eventIdOf(t.part, own),
        eventIdOf(t.part, named),
        eventIdOf(t.part, refOfMs(START_MS + 1)),
        eventIdOf(t.part, 'fffffffffffffff'),
        eventIdOf({ ...t.part, number: 1 }, own),
        other,
      ];
      const answers = refsOf(await t.ingest(...ids.map(senderId => event('k', { senderId }))));
      expect(answers).toEqual([own, 'RESERVED', 'RESERVED', 'RESERVED', 'RESERVED', expect.any(String)]);
      expect(await t.ingest(event('k', { senderId: other }))).toMatchObject({ events: [{ answer: 'DUP' }] });
      expect(await t.log()).toHaveLength(3);
      expect((await t.counts('a'))[1]).toBe(3);
      await redis().call('xtrim', t.keys.log, 'MAXLEN', 0);
      expect(refsOf(await t.ingest(event('k', { senderId: ids[0] })))).toEqual(['RESERVED']);
    });

    test('is found after the clock was set back', async () => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      const [ref] = refsOf(await t.ingest(event('', { senderId: 'x' })));
      t.clock.ms -= HOUR_MS;
      expect(await t.ingest(event('', { senderId: 'x' }))).toMatchObject({ events: [{ answer: 'DUP', ref }] });
    });

    test.each([2, 5, 30])('is found after the clock was set back by %i hours, and later', async hours => {
      const t = createTestPart(redis());
      await t.setUp({}, []);
      const send = async (...ids: string[]) => {
        const answer = await t.ingest(...ids.map(senderId => event('', { senderId })));
        return answer.answer === 'OK' && answer.events.map(each => each.answer);
      };
      await send('a');
      t.clock.ms += HOUR_MS;
      await send('b');
      t.clock.ms -= hours * HOUR_MS;
      expect(await send('a', 'b', 'c')).toEqual(['DUP', 'DUP', 'OK']);
      for (let hour = 0; hour < hours; hour += 3) {
        t.clock.ms += 3 * HOUR_MS;
        expect(await send('b', 'c')).toEqual(['DUP', 'DUP']);
      }
    });

    test('is stored in a key for its hour, which does not expire; ids of Sluice are not stored', async () => {
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
});
