import { createReplays, type Replays } from '../accounts/replays.ts';
import { createHintIndex } from '../hints/hints.ts';
import { PART_CHUNK_EVENTS } from '../part/owner/replays.ts';
import type { ReplayInboxes } from '../plane/replay-inboxes.ts';
import type { RedisClient } from '../redis/client.ts';

/** Opens the replays, and the index containing their due times. */
export function openReplays(redis: RedisClient, nowMs: () => number, inboxes: ReplayInboxes): Replays {
  return createReplays({
    redis,
    nowMs,
    lowerAccounts: createHintIndex(redis, 'a').lower,
    inboxes,
    chunkEvents: PART_CHUNK_EVENTS,
  });
}
