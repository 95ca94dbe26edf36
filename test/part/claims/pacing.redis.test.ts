import { expect, test } from 'vitest';
import type { Claim } from '../../../src/part/claims/message.ts';
import { onEachRedis } from '../../../src/redis/testing/each-redis.ts';
import { startPart } from '../../support/part/part.ts';
import { NOT_PUSHED } from '../../support/part/part-inbox.ts';

const HOUR_MS = 3_600_000;

onEachRedis(redis => {
  /** Starts a subscription without order that has waiting events. */
  async function start(maxPerSecond: number | undefined, events: number) {
    const pace = maxPerSecond === undefined ? {} : { maxPerSecond };
    const { t, d } = await startPart(redis(), { a: { cap: 10_000, unordered: true, ...pace } }, ['k']);
    for (let at = 0; at < events; at += 64) await t.send(...Array<string>(Math.min(64, events - at)).fill('k'));
    return { t, d, dispatchers: [d, t.dispatcher('d2')] };
  }
  type Started = Awaited<ReturnType<typeof start>>;

  /**
   * Drives two dispatchers, which send each request as early as possible, for the given time. Returns the start of each
   * attempt, and the number of requests.
   */
  async function drive({ t, dispatchers }: Started, forMs: number, lateMs = 0) {
    const begun: number[] = [];
    let asked = 0;
    const endMs = t.clock.ms + forMs;
    while (t.clock.ms < endMs) {
      const { claims, more, dueMs } = await (dispatchers[asked++ % 2] as Started['d']).exchange(64, NOT_PUSHED);
      begun.push(...claims.map(() => t.clock.ms));
      if (more || claims.length === 64) continue;
      if (dueMs === undefined) break;
      t.clock.ms = Math.max(dueMs, t.clock.ms + 1) + lateMs;
    }
    return { begun, asked };
  }

  const mostIn = (times: readonly number[], windowMs: number): number =>
    Math.max(...times.map(from => times.filter(at => at >= from && at < from + windowMs).length));

  test('never exceeds the rate in any second, and uses the full rate', async () => {
    const { begun, asked } = await drive(await start(10, 60), 5_000);
    expect(begun).toHaveLength(50);
    expect(mostIn(begun, 1_000)).toBe(10);
    // Attempts are distributed evenly, without a burst at the start of each second.
    expect(mostIn(begun, 100)).toBe(1);
    expect(asked).toBe(50);
  });

  test('a late timer reduces the rate, and never increases it', async () => {
    const { begun } = await drive(await start(10, 60), 3_000, 13);
    expect(mostIn(begun, 1_000)).toBeLessThanOrEqual(10);
    expect(begun.length).toBeGreaterThan(24);
  });

  test('claims a twentieth of a high rate at once', async () => {
    const { begun, asked } = await drive(await start(400, 900), 2_000);
    expect(begun).toHaveLength(800);
    expect(mostIn(begun, 1_000)).toBe(400);
    expect(asked).toBeLessThanOrEqual(41);
  });

  test('an idle endpoint does not receive a larger burst afterwards', async () => {
    const it = await start(40, 50);
    it.t.clock.ms += HOUR_MS;
    const { begun } = await drive(it, 500);
    expect(mostIn(begun, 50)).toBe(2);
    expect(begun).toHaveLength(20);
  });

  test('retries count as attempts', async () => {
    const { t, d } = await start(1, 1);
    const [first] = (await d.exchange(64, NOT_PUSHED)).claims;
    d.end(first as Claim, 'failed', { dueMs: t.clock.ms + 100 });
    t.clock.ms += 999;
    expect((await d.exchange(64, NOT_PUSHED)).claims).toEqual([]);
    t.clock.ms += 1;
    expect((await d.exchange(64, NOT_PUSHED)).claims).toMatchObject([{ attempts: 1 }]);
  });

  test('a clock that was set back does not block attempts for long', async () => {
    const { t, d } = await start(1, 3);
    expect((await d.exchange(64, NOT_PUSHED)).claims).toHaveLength(1);
    t.clock.ms -= HOUR_MS;
    await t.send('k');
    const { begun } = await drive({ t, d, dispatchers: [d, t.dispatcher('d2')] }, 2_000);
    expect(begun).toHaveLength(2);
  });

  test('does not store anything without a limit', async () => {
    const { t, d } = await start(undefined, 3);
    expect((await d.exchange(64, NOT_PUSHED)).claims).toHaveLength(3);
    expect(await t.hash('health')).toEqual({});
  });
});
