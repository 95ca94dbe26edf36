import type { RedisClient } from '../redis/client.ts';
import { createHintIndex } from '../redis/hints.ts';
import { createReplays, type Replays } from '../redis/replays.ts';

/** Opens the replays and the indexes in which they become due. */
export function openReplays(redis: RedisClient, nowMs: () => number): Replays {
  return createReplays({
    redis,
    nowMs,
    lowerInboxes: createHintIndex(redis, 'd').lower,
    lowerAccounts: createHintIndex(redis, 'a').lower,
  });
}
