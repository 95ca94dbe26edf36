import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createPartInbox } from '../../test/support/part/part-inbox.ts';
import { createRedisShares, useShareOf } from '../facade/objects/redis-shares.ts';
import { Refusal } from '../http/refusal.ts';
import type { RedisClient } from '../redis/client.ts';
import { shareTime } from '../redis/shared-client.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { systemClock } from '../time/clock.ts';

const FLOOD_MS = 2_000;

/** An inbox with 1,000 events, read within the share of an account. */
async function openInbox(redis: RedisClient, account: string, onRefused: () => void = () => undefined) {
  const used = { micros: 0, calls: 0 };
  const shares = createRedisShares(systemClock, onRefused);
  const counting = shareTime(redis, (master, kind) =>
    shares.reading(master, kind)?.then(end => micros => {
      used.micros += micros ?? 0;
      used.calls++;
      end(micros);
    }),
  );
  const opened = await createPartInbox(counting);
  for (let n = 0; n < 20; n++) await opened.publish(Array.from({ length: 50 }, (_, key) => 'abc'[key % 3] as string));
  const read = () => useShareOf({ account }, () => opened.reader.list(opened.inbox, { limit: 250 }));
  return { ...opened, used, read };
}

onEachRedis(redis => {
  test('a flood of reads takes a tenth of the time of Redis, and others are served', async () => {
    const evil = await openInbox(redis(), 'evil');
    const shop = await openInbox(redis(), 'shop');
    const startedMs = performance.now();
    let isOver = false;
    const flood = Array.from({ length: 32 }, async () => {
      // On a busy machine, a single call can take so long that the next ones are refused.
      while (!isOver) await evil.read().catch(() => delay(10));
    });
    let served = 0;
    while (performance.now() - startedMs < FLOOD_MS) {
      const page = await shop.read();
      if (page.answer === 'OK') served++;
      await delay(50);
    }
    isOver = true;
    await Promise.all(flood);
    const elapsedMs = performance.now() - startedMs;
    const usedMs = evil.used.micros / 1_000;
    // Its burst, and the additional time that 32 calls may need.
    expect(usedMs).toBeLessThanOrEqual(0.1 * elapsedMs + 100 + 32 * (usedMs / evil.used.calls));
    expect(evil.used.calls).toBeGreaterThan(32);
    // The number depends on the machine, but they never wait for the share of the other account.
    expect(served).toBeGreaterThan(0);
  });

  test('reads that would wait for more than two seconds are refused, but those of others are not', async () => {
    let refusals = 0;
    const evil = await openInbox(redis(), 'evil', () => refusals++);
    const answers = await Promise.all(
      Array.from({ length: 1_500 }, () => evil.read().catch((refused: unknown) => refused)),
    );
    const refused = answers.filter(answer => answer instanceof Refusal);
    expect(refused.length).toBeGreaterThan(0);
    expect(refusals).toBe(refused.length);
    for (const { code, facts } of refused as Refusal[]) {
      expect(code).toBe('rate_limited');
      expect(Number(facts.headers?.['retry-after'])).toBeGreaterThanOrEqual(2);
    }
    expect(await useShareOf({ account: 'shop' }, () => evil.reader.list(evil.inbox, { limit: 250 }))).toMatchObject({
      answer: 'OK',
    });
  });
});
