import { describe, expect, test } from 'vitest';
import { startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Claim } from '../claims/message.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';

const RETENTION_MS = 2 * 3_600_000;

onEachRedis(redis => {
  async function start(...args: Parameters<typeof startPart> extends [unknown, ...infer Rest] ? Rest : never) {
    const world = await startPart(redis(), ...args);
    await world.t.change({ kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) });
    return world;
  }

  describe('retention', () => {
    test('removes the results of an event that was delivered to everyone', async () => {
      const { t, d } = await start();
      const [ref] = (await t.send('k')) as [string];
      for (const claim of (await d.exchange()).claims) d.end(claim);
      await d.exchange();
      expect(await t.records(ref)).toHaveLength(1);
      t.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(t)).toMatchObject({ events: 1, expired: 0 });
      expect(await t.records(ref)).toEqual([]);
      expect(await t.members('final')).toEqual([]);
    });

    /**
     * The number of subscriptions of an event, the slots for which it failed, and the remaining records after the
     * retention.
     */
    async function endAll(count: number, fails: (n: number) => boolean, reason = '500') {
      const names = Array.from({ length: count }, (_, n) => `s${n}`);
      const { t, d } = await start(Object.fromEntries(names.map(name => [name, {}])), ['k']);
      const [ref] = (await t.send('k')) as [string];
      await t.advanceAll();
      const failed = new Set<string>();
      for (let ended = 0; ended < count; ended++) {
        if (d.held.size === 0) await d.exchange();
        const [claim] = [...d.held.values()] as [Claim];
        if (fails(ended)) {
          failed.add(claim.slot);
          d.end(claim, 'dead', { reason });
        } else d.end(claim);
      }
      await d.exchange(0);
      const before = await t.chunkSizes(ref);
      t.clock.ms += RETENTION_MS + 1;
      const { eventCalls } = await sweepAll(t);
      expect(await t.members('final')).toHaveLength(failed.size);
      const left = await t.records(ref);
      const slots = left.filter(({ outcome }) => outcome === 'dead').map(({ slot }) => slot);
      expect(slots.toSorted()).toEqual([...failed].toSorted());
      return { eventCalls, before, after: await t.chunkSizes(ref), delivered: left.length - slots.length };
    }

    test.each([
      ['none', () => false, 0],
      ['the first one', n => n === 0, 1],
      ['one in the middle', n => n === 150, 1],
      ['the last one', n => n === 299, 1],
      ['one in each chunk', n => n % 75 === 0, 1],
      ['every other one', n => n % 2 === 0, 2],
      ['all but one', n => n !== 150, 4],
      ['all', () => true, 4],
    ] as readonly [string, (n: number) => boolean, number][])(
      'only keeps the results of hundreds of subscriptions that failed: %s',
      async (_, fails, chunks) => {
        const { before, after, delivered } = await endAll(300, fails);
        expect(before.length).toBeGreaterThan(3);
        expect([after.length, delivered]).toEqual([chunks, 0]);
      },
    );

    test('takes several calls if the results are large', async () => {
      const small = await endAll(300, n => n % 3 > 0);
      const large = await endAll(300, n => n % 3 > 0, 'x'.repeat(1_000));
      expect([small.eventCalls, large.eventCalls]).toEqual([1, 2]);
      expect(large.delivered).toBe(0);
      expect(large.after.length).toBeLessThanOrEqual(large.before.length);
    });

    test('reads and writes little for each of many large results, and removes those that were delivered', async () => {
      const { before, after, delivered } = await endAll(750, n => n % 25 > 0, 'x'.repeat(1_000));
      expect(Math.max(...before)).toBeLessThan(100_000);
      expect([after.length <= before.length, delivered]).toEqual([true, 0]);
    });

    test('keeps everything if there are too many large results', async () => {
      const { before, after, delivered } = await endAll(480, n => n > 0, 'x'.repeat(20_000));
      expect(Math.max(...before)).toBeGreaterThan(200_000);
      const sorted = (sizes: readonly number[]) => sizes.toSorted((a, b) => a - b);
      expect([sorted(after), delivered]).toEqual([sorted(before), 1]);
    });
  });
});
