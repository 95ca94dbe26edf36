import { describe, expect, test } from 'vitest';
import { createTestPart, event, row } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

onEachRedis(redis => {
  const refsOf = (answer: Awaited<ReturnType<ReturnType<typeof createTestPart>['ingest']>>) =>
    answer.answer === 'OK' ? answer.events.map(each => ('ref' in each ? each.ref : each.answer)) : [];

  describe('routing', () => {
    test('only routes to live subscriptions with an active key', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, paused: { route: 'paused' }, closed: { route: 'closed' }, b: {} }, ['k', 'l']);
      await t.deactivate('b', 'k');
      await t.send('k', 'l', 'other', '');
      const routed = await Promise.all(['a', 'paused', 'closed', 'b'].map(async name => (await t.counts(name))[1]));
      expect(routed).toEqual([2, 0, 0, 1]);
      expect((await t.log()).map(({ slots }) => slots)).toEqual([[t.slot('a')], expect.any(Array), [], []]);
      expect((await t.hash('meta')).out).toMatch(/ 0 0 2$/);
    });

    test('returns the number of references, and of events without an active key', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, b: {}, paused: { route: 'paused' } }, ['k']);
      expect(await t.ingest(event('k'), event('k'))).toMatchObject({ references: 4, inactive: 0 });
      expect(await t.ingest(event('k'), event('other'), event(''))).toMatchObject({ references: 2, inactive: 1 });
      // Paused subscriptions receive the event later.
      for (const name of ['a', 'b']) await t.setRow(name, { route: 'paused' });
      expect(await t.ingest(event('k'))).toMatchObject({ references: 0, inactive: 0 });
    });

    test('charges each reference once by the size of the body, and does not charge duplicates', async () => {
      const t = createTestPart(redis());
      await t.setUp({ a: {}, b: {} }, ['k']);
      const body = Buffer.alloc(16_385);
      await t.ingest(event('k', { body, senderId: 'x' }), event('k', { body, senderId: 'x' }), event('none', { body }));
      expect((await t.hash('meta')).used).toBe('4');
    });

    test('more than 128 slots of a key are stored in several fields, and all of them receive the event', async () => {
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

    test('stores as many events as have 512 references, and leaves the others to the next call', async () => {
      const t = createTestPart(redis());
      const names = Array.from({ length: 200 }, (_, i) => `s${i}`);
      await t.setUp(Object.fromEntries(names.map(name => [name, {}])), ['k']);
      const answer = await t.ingest(event('k'), event('k'), event('k'), event('k'));
      expect(refsOf(answer)).toHaveLength(2);
      expect((await t.members('pending')).length).toBe(400);
      expect(await t.log()).toHaveLength(2);
    });
  });

  describe('holding back', () => {
    test('stores events without routing while the activations are incomplete', async () => {
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

    test('routes events while there are enough tokens, and stops before the next event', async () => {
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
        const some = slots.slice(at, at + 200);
        await t.change(
          ...some.map(slot => ({ kind: 'row' as const, slot, row: row() })),
          ...some.map(slot => ({ kind: 'on' as const, slot, groupKey: 'k' })),
        );
      }
      const answer = await t.ingest(event('k'));
      expect(refsOf(answer)).toHaveLength(1);
      expect((await t.hash('meta')).hold).toBe('wide');
      expect(await redis().call('exists', t.keys.pending)).toBe(0);
    });
  });
});
