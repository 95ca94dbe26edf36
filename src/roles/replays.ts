import { createReplays, type Replays } from '../accounts/replays.ts';
import { createHintIndex } from '../hints/hints.ts';
import type { ScriptClient } from '../part/call.ts';
import { PART_CHUNK_EVENTS } from '../part/owner/replays.ts';
import { createTokens } from '../part/tokens/tokens.ts';
import type { ReplayInboxes } from '../plane/replay-inboxes.ts';
import type { RedisClient } from '../redis/client.ts';

/**
 * Opens the replays, and the index containing their due times.
 *
 * @param parts client for the stream parts that return their tokens
 */
export function openReplays(
  redis: RedisClient,
  nowMs: () => number,
  inboxes: ReplayInboxes,
  parts: ScriptClient = redis,
): Replays {
  const { recallAll } = createTokens(parts);
  return createReplays({
    redis,
    nowMs,
    lowerAccounts: createHintIndex(redis, 'a').lower,
    inboxes,
    chunkEvents: PART_CHUNK_EVENTS,
    reclaimTokens: account =>
      recallAll(account, nowMs()).then(
        () => true,
        () => false,
      ),
  });
}
