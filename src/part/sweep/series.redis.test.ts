import { expect, test } from 'vitest';
import { event, START_MS, startPart, type TestPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createSeriesReader } from '../../series/series-reader.ts';
import { createTrafficStore } from '../../series/traffic-store.ts';

const MINUTE_MS = 60_000;

onEachRedis(redis => {
  const sourceOf = ({ part, keys }: TestPart, number = 0) => ({ ...part, number, meta: keys.meta });
  const fold = (t: TestPart, known?: string) => createTrafficStore(redis()).fold(sourceOf(t), t.clock.ms, known);
  async function bucketAt(t: TestPart, ms: number) {
    const series = await createSeriesReader(redis()).readSeries(t.part.tenant, '1h', t.clock.ms);
    const { startMs: _startMs, ...counts } = series.find(({ startMs }) => startMs === ms - (ms % MINUTE_MS)) ?? {};
    return counts;
  }

  test('the series contains each accepted, routed, delivered, and failed event once', async () => {
    const { t, d } = await startPart(redis(), { a: {}, b: {} }, ['k', 'l']);
    await t.ingest(event('k', { body: Buffer.alloc(20_000) }), event('l'), event('nobody'), event(''));
    const { claims } = await d.exchange();
    for (const [i, claim] of claims.entries()) {
      if (i === 0) d.end(claim, 'failed', { dueMs: t.clock.ms + MINUTE_MS, reason: '500' });
      else if (i === 1) d.end(claim, 'dead', { reason: '500' });
      else d.end(claim);
    }
    await d.exchange(0);
    const counts = { eventsIn: 4, deliveries: 2, failures: 2, notRouted: 2, bytes: 20_012, tokens: 6 };
    const known = await fold(t);
    await fold(t);
    await fold(t, known);
    expect(await bucketAt(t, START_MS)).toEqual(counts);
    t.clock.ms += MINUTE_MS;
    await t.send('k');
    await Promise.all([fold(t), fold(t)]);
    expect(await bucketAt(t, START_MS)).toEqual(counts);
    expect(await bucketAt(t, t.clock.ms)).toMatchObject({ eventsIn: 1, tokens: 2, bytes: 4 });
    // Completed minutes are not stored in the part.
    expect((await t.hash('meta'))['in']?.split(';')).toHaveLength(2);
  });

  test('counts tokens of events that are routed later, and unrouted events when they expire', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    await t.setRow('a', { route: 'paused' });
    await t.send('k');
    await fold(t);
    expect(await bucketAt(t, START_MS)).toMatchObject({ eventsIn: 1, tokens: 0 });
    t.clock.ms += MINUTE_MS;
    await t.setRow('a', {});
    await t.advanceAll();
    await fold(t);
    expect(await bucketAt(t, t.clock.ms)).toMatchObject({ eventsIn: 0, tokens: 1 });
  });

  test('parts of one stream are added up', async () => {
    const { t } = await startPart(redis(), { a: {} }, ['k']);
    await t.send('k');
    await fold(t);
    await createTrafficStore(redis()).fold(sourceOf(t, 1), t.clock.ms);
    expect(await bucketAt(t, START_MS)).toMatchObject({ eventsIn: 2, tokens: 2 });
  });
});
