import { beforeEach, describe, expect, test } from 'vitest';
import { event, startPart, type TestDispatcher, type TestPart } from '../../test/support/part/part.ts';
import { type Bucket, RINGS, type Traffic } from '../core/events/series.ts';
import { tenantKeys } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { createSeriesReader } from '../series/series-reader.ts';
import { createTrafficStore } from './traffic-store.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** The first minute of a day. */
const MIDNIGHT_MS = 20_833 * DAY_MS;

const totalsOf = (series: readonly Bucket[]): Traffic =>
  series.reduce(
    (sum, each) => ({
      eventsIn: sum.eventsIn + each.eventsIn,
      deliveries: sum.deliveries + each.deliveries,
      failures: sum.failures + each.failures,
      notRouted: sum.notRouted + each.notRouted,
      bytes: sum.bytes + each.bytes,
      tokens: sum.tokens + each.tokens,
    }),
    { eventsIn: 0, deliveries: 0, failures: 0, notRouted: 0, bytes: 0, tokens: 0 },
  );

onEachRedis(redis => {
  let t: TestPart;
  let d: TestDispatcher;
  const read = (history: '1h' | '24h' | '7d') =>
    createSeriesReader(redis()).readSeries(t.part.tenant, history, t.clock.ms);
  const fold = (nowMs = t.clock.ms, known?: string, store = createTrafficStore(redis())) =>
    store.fold({ ...t.part, meta: t.keys.meta }, nowMs, known);
  const says = async (history: '1h' | '24h' | '7d', ms: number) => {
    const { granularitySeconds } = RINGS[history];
    const startMs = Math.floor(ms / granularitySeconds / 1_000) * granularitySeconds * 1_000;
    return (await read(history)).find(bucket => bucket.startMs === startMs);
  };
  /** Stores and claims events and ends their deliveries. */
  async function deliver(count: number): Promise<void> {
    await t.send(...Array.from({ length: count }, (_, i) => `k${i}`));
    for (const claim of (await d.exchange(64, { roomBytes: 0 })).claims) d.end(claim);
    await d.exchange(0, { roomBytes: 0 });
  }

  beforeEach(async () => {
    const names = Array.from({ length: 5 }, (_, i) => `k${i}`);
    ({ t, d } = await startPart(redis(), { x: {} }, names));
    t.clock.ms = MIDNIGHT_MS;
  });

  test('counts an event once, in the minute in which it was stored', async () => {
    const send = (...bodies: string[]) =>
      t.ingest(...bodies.map((body, i) => event('a', { senderId: `${i}`, body: Buffer.from(body) })));
    await send('four', 'four');
    t.clock.ms += MINUTE_MS - 1;
    await send('four', 'four', 'seven..');
    t.clock.ms += 1;
    await t.ingest(event('a', { body: Buffer.alloc(0) }));
    await fold();
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject({ eventsIn: 3, bytes: 15 });
    expect(await says('1h', MIDNIGHT_MS + MINUTE_MS)).toMatchObject({ eventsIn: 1, bytes: 0 });
    for (const history of ['1h', '24h', '7d'] as const) {
      expect(totalsOf(await read(history))).toMatchObject({ eventsIn: 4, bytes: 15 });
    }
  });

  test('adds each count once, in any order and with repetitions', async () => {
    await deliver(1);
    const early = createTrafficStore({
      ...redis(),
      // This reads immediately. The test decides when it writes.
      run: async (name, keys, args) => {
        await late;
        return redis().run(name, keys, args);
      },
    });
    const { promise: late, resolve: go } = Promise.withResolvers<void>();
    const stale = fold(t.clock.ms, undefined, early);
    await redis().call('hget', t.keys.meta, 'out');
    await deliver(2);
    const known = await fold();
    go();
    await stale;
    await fold();
    expect(await fold(t.clock.ms, known)).toBe(known);
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject({ deliveries: 3, tokens: 3 });
    t.clock.ms += MINUTE_MS;
    await deliver(1);
    await fold();
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject({ deliveries: 3 });
    expect(await says('1h', t.clock.ms)).toMatchObject({ deliveries: 1 });
  });

  test('counts correctly at the edge of a week, even if the clocks of two processes differ slightly', async () => {
    const edgeMs = Math.ceil(MIDNIGHT_MS / WEEK_MS) * WEEK_MS;
    t.clock.ms = edgeMs - 2 * MINUTE_MS;
    await t.send('a');
    await fold();
    t.clock.ms = edgeMs - 1;
    await t.send('a', 'a');
    for (const nowMs of [edgeMs + 1, edgeMs - 1, edgeMs + 2]) await fold(nowMs);
    expect(totalsOf(await read('24h')).eventsIn).toBe(3);
    await t.send('a');
    for (const nowMs of [edgeMs - 1, edgeMs + 3]) await fold(nowMs);
    expect(totalsOf(await read('24h')).eventsIn).toBe(4);
  });

  test('keeps minutes that were not folded', async () => {
    for (let i = 0; i < 90; i++) {
      await deliver(1);
      t.clock.ms += MINUTE_MS;
    }
    await fold();
    const quarters = (await read('24h')).filter(({ deliveries }) => deliveries > 0);
    expect(quarters.map(({ deliveries }) => deliveries)).toEqual(Array.from({ length: 6 }, () => 15));
    expect((await read('7d')).filter(({ deliveries }) => deliveries > 0).map(each => each.deliveries)).toEqual([
      60, 30,
    ]);
    // The current minute does not have any counts in the last hour yet.
    expect((await read('1h')).map(({ deliveries }) => deliveries)).toEqual([...Array.from({ length: 59 }, () => 1), 0]);
    // Folded counts are not stored twice.
    for (const field of ['in', 'out']) expect((await t.hash('meta'))[field]?.split(';')).toHaveLength(2);
  });

  test('over seven days, each bucket is exact in each history, and the oldest ones are removed', async () => {
    const made: { readonly ms: number; readonly n: number }[] = [];
    for (let i = 0; i < 60; i++) {
      const n = 1 + (i % 3);
      await t.send(...Array.from({ length: n }, () => 'k'));
      made.push({ ms: t.clock.ms, n });
      if (i % 2 === 0) await fold();
      t.clock.ms += 1 + Math.floor((i % 7) * 59 * MINUTE_MS + i * 977);
    }
    await fold();
    for (const history of ['1h', '24h', '7d'] as const) {
      for (const { startMs, eventsIn } of await read(history)) {
        const endMs = startMs + RINGS[history].granularitySeconds * 1_000;
        const wanted = made.filter(({ ms }) => ms >= startMs && ms < endMs).reduce((sum, { n }) => sum + n, 0);
        expect([history, startMs, eventsIn]).toEqual([history, startMs, wanted]);
      }
    }
    t.clock.ms += 8 * DAY_MS;
    expect(totalsOf(await read('7d')).eventsIn).toBe(0);
    // This is reported again by a process that was unavailable for a long time, so it is too old for any series.
    await redis().call('hset', t.keys.meta, 'in', `${MIDNIGHT_MS + 1};${MIDNIGHT_MS / MINUTE_MS} 9 9 9`);
    await fold();
    expect(totalsOf(await read('7d')).eventsIn).toBe(0);
  });

  test('distinguishes a part that was lost and started again', async () => {
    await t.send('a', 'b');
    await fold();
    await redis().call('hdel', t.keys.meta, 'in');
    t.clock.ms += 10;
    await t.send('a');
    await fold();
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject({ eventsIn: 3 });
  });

  describe('the size of the series', () => {
    test('is limited to the newest minutes for a part that is not folded', async () => {
      const minute = MIDNIGHT_MS / MINUTE_MS;
      const entries = Array.from({ length: 2_400 }, (_, i) => `;${minute - 2_400 + i} 1 4 0`);
      const begun = `${MIDNIGHT_MS - 2_400 * MINUTE_MS}`;
      await redis().call('hset', t.keys.meta, 'in', begun + entries.join(''));
      await t.send('a');
      const kept = (await t.hash('meta')).in ?? '';
      expect(kept.length).toBeLessThan(20_000);
      expect(kept.startsWith(`${begun};`)).toBe(true);
      expect(kept.endsWith(`;${minute - 1} 1 4 0;${minute} 1 4 0`)).toBe(true);
      await fold();
      expect(totalsOf(await read('7d')).eventsIn).toBe(kept.split(';').length - 1);
    });

    test('has the same number of buckets for any traffic, and marks expire after another week', async () => {
      const { series, seriesMarks } = tenantKeys(t.part.tenant);
      const sizes: number[] = [];
      for (let hour = 0; hour < 400; hour++) {
        await deliver(1);
        await fold();
        t.clock.ms += 61 * MINUTE_MS;
        if (hour % 100 === 99) sizes.push(Number(await redis().call('hlen', series)));
      }
      expect(Math.max(...sizes)).toBeLessThanOrEqual(61 + 97 + 169);
      expect(sizes.at(-1)).toBe(sizes.at(-2));
      const bytes = Number(await redis().call('memory', 'usage', series));
      expect(bytes).toBeLessThan(64_000);
      const ttl = Number(await redis().call('pttl', seriesMarks(Math.floor(t.clock.ms / WEEK_MS))));
      expect(ttl).toBeGreaterThan(14 * DAY_MS);
    });
  });
});
