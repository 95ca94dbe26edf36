import { beforeEach, describe, expect, test } from 'vitest';
import { type Bucket, RINGS, type Traffic } from '../core/events/series.ts';
import { integrationKeys, queueKeys, tenantKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, items, QUEUE, START_MS, type Tenant } from './testing/tenant.ts';
import { createTrafficReader } from './traffic-reader.ts';
import { createTrafficStore, type TrafficSource } from './traffic-store.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** The first minute of a day, five hours before the tests' usual start. */
const MIDNIGHT_MS = Math.floor(START_MS / DAY_MS) * DAY_MS;

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
  let t: Tenant;
  const store = () => createTrafficStore(redis());
  const read = (history: '1h' | '24h' | '7d') => createTrafficReader(redis()).readSeries(t.tenant, history, t.nowMs());
  const queue = (): TrafficSource => t.queue;
  const inbox = (name: string): TrafficSource => ({ integration: t.nameOf(name) });
  const says = async (history: '1h' | '24h' | '7d', ms: number) => {
    const { granularitySeconds } = RINGS[history];
    const startMs = Math.floor(ms / granularitySeconds / 1_000) * granularitySeconds * 1_000;
    return (await read(history)).find(bucket => bucket.startMs === startMs);
  };
  /** Ingests, routes and claims one event a group key for `x`, and ends each as said. */
  async function deliver(outcomes: readonly ('delivered' | 'failed' | 'dead')[]): Promise<void> {
    const entries = await t.ingest(outcomes.map((_outcome, i) => `k${i}`));
    await t.inboxes.route(t.inboxOf('x'), t.nowMs(), START_MS, 'gen1', t.account, items(entries));
    const claimed = await t.inboxes.claim(t.inboxOf('x'), t.nowMs(), 64, 'token', 1_000);
    if (claimed.answer !== 'OK') throw new Error(claimed.answer);
    const completions = claimed.claims.map(({ lane, ref }) => {
      const outcome = outcomes[Number(lane.slice(1))] as 'delivered';
      const note = {
        delivered: `delivered ${t.nowMs()} 1 204 1`,
        dead: `dead ${t.nowMs()} 1 500 1`,
        failed: undefined,
      };
      const record = note[outcome];
      return {
        lane,
        ref,
        token: 'token',
        outcome,
        dueMs: t.nowMs() + 7 * DAY_MS,
        ...(record === undefined ? { attempt: `${t.nowMs()},500,1` } : { record }),
      };
    });
    expect((await t.inboxes.complete(t.inboxOf('x'), t.nowMs(), completions)).answers).toEqual(
      outcomes.map(() => 'OK'),
    );
  }

  beforeEach(async () => {
    t = createTenant(redis());
    t.clock.ms = MIDNIGHT_MS;
    await t.apply(t.routes({ x: { sinceMs: 0 }, y: { sinceMs: 0 } }));
    for (let i = 0; i < 5; i++) await t.activate('x', `k${i}`, 0);
  });

  test('what ingress accepts, in the minute of its acceptance; repetitions of an id are none', async () => {
    await t.ingest(['a', 'b'], 'four');
    t.clock.ms += MINUTE_MS - 1;
    await t.ingest(['a'], 'seven..');
    t.clock.ms += 1;
    await t.ingest(['a'], '');
    await store().fold(queue(), t.nowMs());
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject({ eventsIn: 3, bytes: 15 });
    expect(await says('1h', MIDNIGHT_MS + MINUTE_MS)).toMatchObject({ eventsIn: 1, bytes: 0 });
    for (const history of ['1h', '24h', '7d'] as const) {
      expect(totalsOf(await read(history))).toMatchObject({ eventsIn: 4, bytes: 15 });
    }
  });

  test('deliveries, failed attempts, dead ones, and the tokens of what was routed', async () => {
    await deliver(['delivered', 'failed', 'dead', 'delivered']);
    await store().fold(inbox('x'), t.nowMs());
    const counts = { deliveries: 2, failures: 2, tokens: 4, eventsIn: 0 };
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject(counts);
    expect(await says('7d', MIDNIGHT_MS)).toMatchObject(counts);
  });

  test('a count is added once, whoever says it, how often, and in whatever order', async () => {
    await deliver(['delivered']);
    const early = createTrafficStore({
      ...redis(),
      // Reads now, and writes when it is told to.
      run: async (name, keys, args) => {
        await late;
        return redis().run(name, keys, args);
      },
    });
    const { promise: late, resolve: go } = Promise.withResolvers<void>();
    const stale = early.fold(inbox('x'), t.nowMs());
    await redis().call('hget', integrationKeys(t.nameOf('x')).meta, 'traffic');
    await deliver(['delivered', 'delivered']);
    const known = await store().fold(inbox('x'), t.nowMs());
    go();
    await stale;
    await store().fold(inbox('x'), t.nowMs());
    expect(await store().fold(inbox('x'), t.nowMs(), known)).toBe(known);
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject({ deliveries: 3, tokens: 3 });
    t.clock.ms += MINUTE_MS;
    await deliver(['delivered']);
    await store().fold(inbox('x'), t.nowMs());
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject({ deliveries: 3 });
    expect(await says('1h', t.nowMs())).toMatchObject({ deliveries: 1 });
  });

  test('at the edge of a week, too, when two processes are a little apart', async () => {
    const weekMs = 7 * DAY_MS;
    const edgeMs = Math.ceil(START_MS / weekMs) * weekMs;
    t.clock.ms = edgeMs - 2 * MINUTE_MS;
    await t.ingest(['a']);
    await store().fold(queue(), t.nowMs());
    t.clock.ms = edgeMs - 1;
    await t.ingest(['a', 'a']);
    for (const nowMs of [edgeMs + 1, edgeMs - 1, edgeMs + 2]) await store().fold(queue(), nowMs);
    expect(totalsOf(await read('24h')).eventsIn).toBe(3);
    await t.ingest(['a']);
    for (const nowMs of [edgeMs - 1, edgeMs + 3]) await store().fold(queue(), nowMs);
    expect(totalsOf(await read('24h')).eventsIn).toBe(4);
  });

  test('minutes that nobody folded are kept apart, until somebody does', async () => {
    for (let i = 0; i < 90; i++) {
      await deliver(['delivered']);
      t.clock.ms += MINUTE_MS;
    }
    await store().fold(inbox('x'), t.nowMs());
    const quarters = (await read('24h')).filter(({ deliveries }) => deliveries > 0);
    expect(quarters.map(({ deliveries }) => deliveries)).toEqual(Array.from({ length: 6 }, () => 15));
    expect((await read('7d')).filter(({ deliveries }) => deliveries > 0).map(each => each.deliveries)).toEqual([
      60, 30,
    ]);
    // Of the last hour: the minute that runs has none yet.
    expect((await read('1h')).map(({ deliveries }) => deliveries)).toEqual([...Array.from({ length: 59 }, () => 1), 0]);
    // What was folded is not kept twice.
    const text = (await redis().call('hget', integrationKeys(t.nameOf('x')).meta, 'traffic')) as string;
    expect(text.split(';')).toHaveLength(2);
  });

  test('over seven days each bucket is exact in each history, and the oldest fall out', async () => {
    const made: { readonly ms: number; readonly n: number }[] = [];
    for (let i = 0; i < 60; i++) {
      const n = 1 + (i % 3);
      await t.ingest(
        Array.from({ length: n }, () => 'k'),
        'x',
      );
      made.push({ ms: t.nowMs(), n });
      if (i % 2 === 0) await store().fold(queue(), t.nowMs());
      t.clock.ms += 1 + Math.floor((i % 7) * 59 * MINUTE_MS + i * 977);
    }
    await store().fold(queue(), t.nowMs());
    for (const history of ['1h', '24h', '7d'] as const) {
      for (const { startMs, eventsIn } of await read(history)) {
        const endMs = startMs + RINGS[history].granularitySeconds * 1_000;
        const wanted = made.filter(({ ms }) => ms >= startMs && ms < endMs).reduce((sum, { n }) => sum + n, 0);
        expect([history, startMs, eventsIn]).toEqual([history, startMs, wanted]);
      }
    }
    t.clock.ms += 8 * DAY_MS;
    expect(totalsOf(await read('7d')).eventsIn).toBe(0);
    // Said again by who was away for long: too old for any series.
    await redis().call(
      'hset',
      queueKeys(t.tenant, QUEUE).meta,
      'arrived',
      `${MIDNIGHT_MS + 1},;${MIDNIGHT_MS / MINUTE_MS} 9 9 9`,
    );
    await store().fold(queue(), t.nowMs());
    expect(totalsOf(await read('7d')).eventsIn).toBe(0);
  });

  test('a source that was lost and begins anew is another one', async () => {
    await t.ingest(['a', 'b']);
    await store().fold(queue(), t.nowMs());
    await redis().call('hdel', queueKeys(t.tenant, QUEUE).meta, 'arrived');
    t.clock.ms += 10;
    await t.ingest(['a']);
    await store().fold(queue(), t.nowMs());
    expect(await says('1h', MIDNIGHT_MS)).toMatchObject({ eventsIn: 3 });
  });

  describe('what it takes', () => {
    test('the series has as many buckets for any traffic, and marks end with the week after', async () => {
      const names = Array.from({ length: 40 }, (_, i) => `i${i}`);
      await t.apply(t.routes(Object.fromEntries(names.map(name => [name, { sinceMs: 0 }]))));
      for (const name of names) await t.activate(name, 'k', 0);
      const sizes: number[] = [];
      for (let hour = 0; hour < 400; hour++) {
        const entries = await t.ingest(['k']);
        const name = names[hour % names.length] as string;
        await t.inboxes.route(t.inboxOf(name), t.nowMs(), START_MS, 'gen1', t.account, items(entries));
        await store().fold(queue(), t.nowMs());
        await store().fold(inbox(name), t.nowMs());
        t.clock.ms += 61 * MINUTE_MS;
        if (hour % 100 === 99) sizes.push(Number(await redis().call('hlen', tenantKeys(t.tenant).series)));
      }
      expect(Math.max(...sizes)).toBeLessThanOrEqual(61 + 97 + 169);
      expect(sizes.at(-1)).toBe(sizes.at(-2));
      expect(
        Number(
          await redis()
            .call('memory', 'usage', tenantKeys(t.tenant).series)
            .catch(() => 0),
        ),
      ).toBeLessThan(64_000);
      const week = Math.floor(t.nowMs() / (7 * DAY_MS));
      const ttl = Number(await redis().call('pttl', tenantKeys(t.tenant).seriesMarks(week)));
      expect(ttl).toBeGreaterThan(14 * DAY_MS);
    });
  });
});
