import { expect, test } from 'vitest';
import { integrationKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createInbox } from './testing/inbox.ts';
import { START_MS, type SubscriptionShort } from './testing/tenant.ts';

const LEASE_MS = 25_000;

onEachRedis(redis => {
  async function start(sub: SubscriptionShort, events: number) {
    const inbox = await createInbox(redis(), { sub: { cap: 10_000, unordered: true, ...sub } }, ['key']);
    for (let at = 0; at < events; at += 200) await inbox.publish(Array(Math.min(200, events - at)).fill('key'));
    return inbox;
  }
  type Started = Awaited<ReturnType<typeof start>>;

  /** Two dispatchers that ask as soon as they may, for so long; answers when each attempt began, and how often they asked. */
  async function drive({ t, inbox }: Started, forMs: number, lateMs = 0) {
    const begun: number[] = [];
    let asked = 0;
    const endMs = t.nowMs() + forMs;
    while (t.nowMs() < endMs) {
      const answer = await t.inboxes.claim(inbox, t.nowMs(), 64, `d${asked % 2}.${asked}`, LEASE_MS);
      asked++;
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      begun.push(...answer.claims.map(() => t.nowMs()));
      if (answer.more || answer.claims.length === 64) continue;
      if (answer.nextMs === undefined) break;
      t.clock.ms = Math.max(answer.nextMs, t.nowMs() + 1) + lateMs;
    }
    return { begun, asked };
  }

  const mostIn = (times: readonly number[], windowMs: number): number =>
    Math.max(...times.map(from => times.filter(at => at >= from && at < from + windowMs).length));

  test('no second has more, whoever asks, and none is wasted', async () => {
    const { begun, asked } = await drive(await start({ maxPerSecond: 10 }, 60), 5_000);
    expect(begun).toHaveLength(50);
    expect(mostIn(begun, 1_000)).toBe(10);
    // Spread, not a burst at the begin of each.
    expect(mostIn(begun, 100)).toBe(1);
    expect(asked).toBe(50);
  });

  test('a timer that is late makes it slower, never faster', async () => {
    const { begun } = await drive(await start({ maxPerSecond: 10 }, 60), 3_000, 13);
    expect(mostIn(begun, 1_000)).toBeLessThanOrEqual(10);
    expect(begun.length).toBeGreaterThan(24);
  });

  test('of many, a twentieth goes at once: it is asked for twenty times a second, not for each', async () => {
    const { begun, asked } = await drive(await start({ maxPerSecond: 400 }, 900), 2_000);
    expect(begun.length).toBe(800);
    expect(mostIn(begun, 1_000)).toBe(400);
    expect(asked).toBeLessThanOrEqual(41);
  });

  test('an endpoint that rested has no more at once for it', async () => {
    const it = await start({ maxPerSecond: 40 }, 50);
    it.t.clock.ms += 3_600_000;
    const { begun } = await drive(it, 500);
    expect(mostIn(begun, 50)).toBe(2);
    expect(begun).toHaveLength(20);
  });

  test('retries count as any attempt', async () => {
    const { t, claim, end } = await start({ maxPerSecond: 1 }, 1);
    const [first] = await claim();
    if (first === undefined) throw new Error('nothing was due');
    await end(first, { outcome: 'failed', dueMs: START_MS + 100 });
    t.clock.ms = START_MS + 999;
    expect(await claim()).toEqual([]);
    t.clock.ms += 1;
    expect(await claim()).toMatchObject([{ attempts: 1 }]);
  });

  test('a clock that was set back holds nobody for long', async () => {
    const it = await start({ maxPerSecond: 1 }, 2);
    expect(await it.claim()).toHaveLength(1);
    it.t.clock.ms -= 600_000;
    await it.publish(['key']);
    it.t.clock.ms += 2_000;
    expect(await it.claim()).toHaveLength(1);
  });

  test('without a limit nothing is counted', async () => {
    const { inbox, claim } = await start({}, 3);
    expect(await claim()).toHaveLength(3);
    expect(await redis().call('hexists', integrationKeys(inbox.integration).sub(inbox.sub), 'paced')).toBe(0);
  });
});
