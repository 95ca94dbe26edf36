import { describe, expect, test } from 'vitest';
import { startPart } from '../../../test/support/part/part.ts';
import type { SlotPatch } from '../../record/control-plan.ts';
import { FencedError } from '../../record/control-store.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';
import { createPartControlSweep } from './control-sweep.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  async function start() {
    const world = await startPart(redis(), { a: {} }, ['k']);
    const { t } = world;
    const { tenant, queue, gen } = t.part;
    await t.change({ kind: 'meta', field: 'retentionMs', value: String(HOUR_MS) });
    // The hashes of the cluster are shared with other tests, which use other fences.
    const patch = async (_fence: number, patches: readonly SlotPatch[]) => {
      for (const { command, key, args } of patches.flatMap(({ ops }) => ops)) await redis().call(command, key, ...args);
    };
    const sweep = createPartControlSweep({ ...redis(), ...t.client }, patch);
    const inbox = { integration: 'int_x', sub: 'a', inc: 'inc1', stream: { tenant, queue } };
    const close = () => t.change({ kind: 'meta', field: 'state', value: 'closing' });
    const drop = () => t.change({ kind: 'drop', slot: t.slot('a') });
    const purgeQueue = (look: boolean, fence = 1, of = gen) =>
      sweep.purgeQueue(fence, { tenant, queue, gen: of }, t.clock.ms, look);
    const purgeInbox = (look: boolean, fence = 1) => sweep.purgeInbox(fence, inbox, t.clock.ms, HOUR_MS, look);
    const keys = async () => {
      const { channel: _, ids: _ids, records: _records, chunks: _chunks, meta: _meta, ...rest } = t.keys;
      const [first = '', ...others] = Object.values(rest);
      return redis().call('exists', first, ...others);
    };
    return { ...world, sweep, inbox, close, drop, purgeQueue, purgeInbox, keys };
  }

  describe('a stream without an owner', () => {
    test('is kept while it accepts events, or has another generation', async () => {
      const { purgeQueue, close, drop } = await start();
      await drop();
      expect(await purgeQueue(false)).toBe(false);
      await close();
      expect(await purgeQueue(false, 1, 'gen0')).toBe(false);
      expect(await purgeQueue(true)).toBe(true);
    });

    test('is removed if nothing is undelivered or listed in an inbox', async () => {
      const { t, d, close, drop, purgeQueue, keys } = await start();
      await t.send('k');
      await close();
      expect(await purgeQueue(true)).toBe(false);
      for (const claim of (await d.exchange()).claims) d.end(claim);
      await d.exchange(0);
      expect(await purgeQueue(true)).toBe(false);
      await drop();
      expect(await purgeQueue(true)).toBe(true);
      expect(await keys()).toBeGreaterThan(0);
      expect(await purgeQueue(false)).toBe(true);
      expect(await keys()).toBe(0);
      expect((await t.hash('meta')).gen).toBe('-');
      expect(await t.ingest()).toMatchObject({ answer: 'GONE' });
      // The remaining data of an earlier call.
      await redis().call('hset', t.keys.body, 'x', 'y');
      expect(await purgeQueue(false)).toBe(true);
      expect(await keys()).toBe(0);
    });

    test('with undelivered events is kept until they have expired', async () => {
      const { t, close, drop, purgeQueue, keys } = await start();
      await t.send('k');
      await close();
      await drop();
      expect(await purgeQueue(false)).toBe(false);
      t.clock.ms += HOUR_MS - 1;
      expect(await purgeQueue(false)).toBe(false);
      t.clock.ms += 1;
      expect(await purgeQueue(false)).toBe(true);
      expect(await keys()).toBe(0);
    });

    test('is left to a newer controller', async () => {
      const { t, close, drop, purgeQueue } = await start();
      await close();
      await drop();
      await t.gate(t.part, 7, []);
      await expect(purgeQueue(false)).rejects.toThrow(FencedError);
      expect((await t.hash('meta')).gen).toBe('gen1');
    });
  });

  describe('a subscription without an owner', () => {
    test('is removed if it is closed and its newest event is older than the retention', async () => {
      const { t, purgeInbox } = await start();
      await t.send('k');
      t.clock.ms += HOUR_MS - 1;
      await t.setRow('a', { route: 'closed' });
      expect(await purgeInbox(false)).toBe(false);
      t.clock.ms += 1;
      for (const route of ['open', 'paused'] as const) {
        await t.setRow('a', { route });
        expect(await purgeInbox(false)).toBe(false);
      }
      await t.setRow('a', { route: 'closed' });
      await expect(purgeInbox(false, 0)).rejects.toThrow(FencedError);
      expect(await purgeInbox(true)).toBe(true);
      expect(Object.keys(await t.hash('subs'))).toEqual([t.slot('a')]);
      const { version } = await t.hash('meta');
      expect(await purgeInbox(false)).toBe(true);
      expect(await t.hash('subs')).toEqual({});
      expect((await t.hash('meta')).version).not.toBe(version);
      expect(await redis().call('zrange', t.keys.dropped, 0, -1)).toEqual([t.slot('a')]);
      await sweepAll(t);
      expect(await redis().call('exists', t.keys.counts, t.keys.pending, t.keys.lists)).toBe(0);
      expect(await purgeInbox(false)).toBe(true);
    });

    test('of an unknown stream, or without a part, has no data to keep', async () => {
      const { t, sweep, inbox } = await start();
      const { stream, ...unknown } = inbox;
      for (const of of [unknown, { ...inbox, stream: { ...stream, queue: 'gone' } }]) {
        expect(await sweep.purgeInbox(1, of, t.clock.ms, HOUR_MS, false)).toBe(true);
      }
    });
  });
});
