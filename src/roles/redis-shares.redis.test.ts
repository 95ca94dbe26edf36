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

/** An inbox with 1,000 events. It is read within the share of an account. */
async function openInbox(
  redis: RedisClient,
  account: string,
  shares = createRedisShares(systemClock, () => undefined),
) {
  const used = { micros: 0, calls: 0 };
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
  test('a flood of reads uses a tenth of the time of Redis', async () => {
    const evil = await openInbox(redis(), 'evil');
    const startedMs = performance.now();
    const flood = Array.from({ length: 32 }, async () => {
      // On a busy machine, a single call can take so long that the next calls are refused.
      while (performance.now() - startedMs < FLOOD_MS) await evil.read().catch(() => delay(10));
    });
    await Promise.all(flood);
    const elapsedMs = performance.now() - startedMs;
    const usedMs = evil.used.micros / 1_000;
    // The burst, and the additional time that 32 calls may require.
    expect(usedMs).toBeLessThanOrEqual(0.1 * elapsedMs + 100 + 32 * (usedMs / evil.used.calls));
    expect(evil.used.calls).toBeGreaterThan(32);
  });

  // A script that is interrupted on a busy machine uses up a share of several seconds. The whole flood is then refused.
  test('a read returns before most of the reads that another account has sent earlier', { retry: 2 }, async () => {
    const shares = createRedisShares(systemClock, () => undefined);
    const evil = await openInbox(redis(), 'evil', shares);
    const shop = await openInbox(redis(), 'shop', shares);
    const answered = { before: 0, all: 0 };
    const flood = Array.from({ length: 1_000 }, () =>
      evil.read().then(
        () => answered.all++,
        () => undefined,
      ),
    );
    expect((await shop.read()).answer).toBe('OK');
    answered.before = answered.all;
    // Redis responds in the order of the calls, so all of them would have returned by now if they had not been delayed.
    expect(answered.before).toBeLessThan(500);
    await Promise.all(flood);
    expect(answered.all).toBeGreaterThan(answered.before);
  });

  test('reads that would wait for more than two seconds are refused, and reads of others are not', async () => {
    let refusals = 0;
    const evil = await openInbox(
      redis(),
      'evil',
      createRedisShares(systemClock, () => refusals++),
    );
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
