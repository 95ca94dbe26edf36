import { describe, expect, test } from 'vitest';
import { event, startPart, type TestPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { HOUR_MS } from '../keys.ts';
import { createDrain } from './drain.ts';
import { createReadOldestOfSlots } from './oldest-waiting.ts';

onEachRedis(redis => {
  const drainOf = (t: TestPart) => createDrain(t.client).read(t.part);
  /** Returns the keys of the part that exist in Redis. */
  async function keysOf(t: TestPart): Promise<string[]> {
    const found = (await redis().callAll('keys', `{q:${t.part.tenant}:*`)) as string[][];
    return [...new Set(found.flat())];
  }

  describe('the remaining work of a part', () => {
    test('counts open deliveries and subscriptions that are behind', async () => {
      const { t, d } = await startPart(redis(), { a: {}, b: {} }, ['k', 'l']);
      expect(await drainOf(t)).toEqual({ unrouted: 0, open: 0 });
      await t.send('k', 'l');
      await d.exchange(1);
      expect(await drainOf(t)).toEqual({ unrouted: 0, open: 4 });
      await t.setRow('a', { route: 'paused' });
      expect(await drainOf(t)).toEqual({ unrouted: 0, open: 4 });
      await t.send('k');
      expect(await drainOf(t)).toEqual({ unrouted: 1, open: 5 });
    });

    test('does not include data that is only kept as a record of a deleted subscription', async () => {
      const { t, d } = await startPart(redis(), { a: {}, b: {} }, ['k', 'l']);
      await t.send('k', 'l');
      await t.change({ kind: 'drop', slot: t.slot('a') });
      expect(await drainOf(t)).toEqual({ unrouted: 0, open: 2 });
      await d.exchange(1);
      expect(await drainOf(t)).toEqual({ unrouted: 0, open: 2 });
      await t.change({ kind: 'drop', slot: t.slot('b') });
      expect((await drainOf(t)).open).toBeLessThanOrEqual(1);
      // The events are delivered again.
      await t.setRow('a', {});
      expect((await drainOf(t)).open).toBeGreaterThanOrEqual(2);
    });

    test('is counted for any number of deleted subscriptions', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {} }, ['k']);
      await t.send('k');
      await t.change({ kind: 'drop', slot: t.slot('a') });
      // The deleted subscription comes after two pages of others.
      const others = Array.from({ length: 1_000 }, (_, n) => ['1', `!${n}`]).flat();
      await redis().call('zadd', t.keys.dropped, ...others);
      expect(await drainOf(t)).toEqual({ unrouted: 0, open: 1 });
    });

    test('includes a part that is held back', async () => {
      const { t } = await startPart(redis(), { a: {} }, ['k']);
      await redis().call('hset', t.keys.meta, 'granted', '0');
      await t.send('k');
      expect(await drainOf(t)).toEqual({ unrouted: 1, open: 0 });
    });

    test('is empty without events, or in a deleted part', async () => {
      const { t } = await startPart(redis(), { a: { route: 'paused' } }, ['k']);
      expect(await drainOf(t)).toEqual({ unrouted: 0, open: 0 });
      expect(await createDrain(t.client).read({ ...t.part, gen: 'other' })).toEqual({ unrouted: 0, open: 0 });
    });
  });

  describe('a removed part', () => {
    test('leaves a mark that expires, and its workers are notified', async () => {
      const { t, d } = await startPart(redis());
      await t.ingest(event('k', { senderId: 'x' }), event('l'), event('m'));
      const { claims } = await d.exchange(3);
      d.end(claims[0] as (typeof claims)[0]);
      d.end(claims[1] as (typeof claims)[0], 'failed', { dueMs: t.clock.ms + 1_000, responseBody: Buffer.from('x') });
      await d.exchange(1);
      await t.deactivate('a', 'm');
      await t.setRow('a', { route: 'paused' });
      await t.send('', 'k');
      await t.setRow('a', {}, 'skip');
      t.clock.ms += HOUR_MS;
      await t.send('');
      expect(await keysOf(t)).toEqual(expect.arrayContaining([t.keys.reasons, t.keys.skips]));
      expect((await keysOf(t)).length).toBeGreaterThan(12);
      expect(await createDrain(t.client).remove(t.part, 1, t.clock.ms)).toBe('OK');
      expect(await keysOf(t)).toEqual([t.keys.meta]);
      expect(await redis().call('pttl', t.keys.meta)).toBeGreaterThan(0);
      for (const claim of d.held.values()) d.end(claim);
      await expect(d.exchange()).rejects.toThrow('GONE');
      expect(await t.ingest(event('k'))).toEqual({ answer: 'GONE' });
      expect(await createDrain(t.client).remove(t.part, 1, t.clock.ms)).toBe('OK');
      expect(await keysOf(t)).toEqual([t.keys.meta]);
    });

    test('leaves nothing else after the clock was set back', async () => {
      const { t, d } = await startPart(redis());
      await t.ingest(event('k', { senderId: 'x' }));
      for (const claim of (await d.exchange()).claims) d.end(claim);
      await d.exchange();
      t.clock.ms -= 24 * HOUR_MS;
      await t.ingest(event('k', { senderId: 'y' }));
      expect(await createDrain(t.client).remove(t.part, 1, t.clock.ms)).toBe('OK');
      expect(await keysOf(t)).toEqual([t.keys.meta]);
    });

    test('that is recreated is not removed with the mark', async () => {
      const { t } = await startPart(redis());
      await createDrain(t.client).remove(t.part, 1, t.clock.ms);
      await t.gate({ ...t.part, gen: 'gen2' }, 1, [{ kind: 'begin' }]);
      expect(await redis().call('pttl', t.keys.meta)).toBe(-1);
      expect(await createDrain(t.client).remove(t.part, 1, t.clock.ms)).toBe('OK');
      expect((await t.hash('meta')).gen).toBe('gen2');
    });

    test('is kept if a newer controller leads', async () => {
      const { t } = await startPart(redis());
      await t.gate(t.part, 7, []);
      const before = await keysOf(t);
      expect(await createDrain(t.client).remove(t.part, 6, t.clock.ms)).toBe('FENCED');
      expect(await keysOf(t)).toEqual(before);
    });
  });

  describe('the oldest waiting event of a subscription', () => {
    const look = (t: TestPart, ...names: string[]) =>
      createReadOldestOfSlots(t.client)(
        t.part,
        names.map(name => ({ slot: t.slot(name), settledTo: '' })),
      );

    test('is the oldest of its lanes, with any key', async () => {
      const { t } = await startPart(redis(), { a: { send: 'held' }, none: {} }, ['k', 'z']);
      await t.deactivate('none', 'k');
      await t.deactivate('none', 'z');
      const startMs = t.clock.ms;
      await t.send('z');
      t.clock.ms += 1_000;
      await t.send('k');
      expect(await look(t, 'a', 'none')).toEqual([
        { unroutedMs: undefined, openMs: startMs, exact: true, settledTo: '' },
        { unroutedMs: undefined, openMs: undefined, exact: true, settledTo: '' },
      ]);
    });

    test('of a subscription that is behind, or of a held part, is the next event of the log', async () => {
      const { t } = await startPart(redis(), { a: {}, b: {} }, ['k']);
      await t.setRow('a', { route: 'paused' });
      t.clock.ms += 1_000;
      await t.send('k');
      const [first, second] = await look(t, 'a', 'b');
      expect([first?.unroutedMs, second?.unroutedMs]).toEqual([t.clock.ms, undefined]);
      await redis().call('hset', t.keys.meta, 'granted', '1');
      t.clock.ms += 1_000;
      await t.send('k');
      expect((await look(t, 'b'))[0]?.unroutedMs).toBe(t.clock.ms);
    });

    test('of very many events is found by several calls', async () => {
      const { t } = await startPart(redis(), { a: { send: 'held' } }, ['k', 'l']);
      await t.deactivate('a', 'k');
      for (let i = 0; i < 10; i++) await t.ingest(...Array.from({ length: 64 }, () => event('k')));
      t.clock.ms += 60_000;
      const openMs = t.clock.ms;
      for (let i = 0; i < 4; i++) await t.ingest(...Array.from({ length: 64 }, () => event('l')));
      let [found] = await look(t, 'a');
      expect(found?.exact).toBe(false);
      for (let looks = 0; !found?.exact; looks++) {
        expect(looks).toBeLessThan(6);
        const settledTo = found?.settledTo ?? '';
        [found] = await createReadOldestOfSlots(t.client)(t.part, [{ slot: t.slot('a'), settledTo }]);
      }
      expect(found?.openMs).toBe(openMs);
    });
  });
});
