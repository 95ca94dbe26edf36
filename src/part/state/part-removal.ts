import { FencedError } from '../../record/control-store.ts';
import type { RedisClient } from '../../redis/client.ts';
import { createTrafficStore } from '../../series/traffic-store.ts';
import { type Part, partKeys } from '../keys.ts';
import { createDrain } from '../sweep/drain.ts';
import { createTokens } from '../tokens/tokens.ts';

/** The steps that are needed to remove a part. Each of them can be repeated. */
export interface PartRemoval {
  /** Adds the part counts to its account and to the series, so that they are not lost. */
  readonly settle: (part: Part, nowMs: number) => Promise<void>;
  /**
   * Removes a part and everything it contains. The part can also be of an earlier generation.
   *
   * @throws FencedError if a newer controller leads
   */
  readonly remove: (part: Part, fence: number, nowMs: number) => Promise<void>;
}

export function createPartRemoval(redis: RedisClient): PartRemoval {
  const drain = createDrain(redis);
  const tokens = createTokens(redis);
  const traffic = createTrafficStore(redis);
  return {
    async settle(part, nowMs) {
      await tokens.close(part, nowMs);
      await traffic.fold({ ...part, meta: partKeys(part).meta }, nowMs);
    },
    async remove(part, fence, nowMs) {
      const answer = await drain.remove(part, fence, nowMs);
      if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${partKeys(part).meta}`);
      // The part no longer reports its ledgers, so they are ended here. Without them, the last step can be completed.
      if (await tokens.endRemoved(part, nowMs)) await drain.remove(part, fence, nowMs);
    },
  };
}
