import { PART_CHUNK_EVENTS } from '../part/owner/replays.ts';
import type { RedisClient } from '../redis/client.ts';
import { createHintIndex } from '../redis/hints.ts';
import type { ReplayInboxes } from '../redis/replay-inboxes.ts';
import { createReplays, type Replays } from '../redis/replays.ts';

/**
 * Opens the replays and the indexes in which they become due.
 *
 * @param inboxes where events lie in parts
 */
export function openReplays(redis: RedisClient, nowMs: () => number, inboxes?: ReplayInboxes): Replays {
  return createReplays({
    redis,
    nowMs,
    lowerInboxes: createHintIndex(redis, 'd').lower,
    lowerAccounts: createHintIndex(redis, 'a').lower,
    ...(inboxes && { inboxes, chunkEvents: PART_CHUNK_EVENTS }),
  });
}
