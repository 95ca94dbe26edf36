import type { Clock } from '../../time/clock.ts';

/** The interval at which tokens are returned, in milliseconds. */
const REFILL_EVERY_MS = 100;
/** A workspace with fewer tokens is treated as having none so that the bucket only contains active workspaces. */
const FEWEST = 0.5;

/**
 * Returns whether a workspace has used up its share. The share is equal to the number of remaining tokens. A single
 * workspace can use half of the capacity, two can use a third each, and so on. This rule always leaves capacity for
 * workspaces with low usage.
 */
export function isShareUsed(own: number, total: number, capacity: number): boolean {
  return own >= capacity - total;
}

/** SharedBucket is a token bucket for all workspaces. */
export interface SharedBucket {
  readonly isEmpty: () => boolean;
  /** Returns true if this workspace has used up its share, while there are still tokens for other workspaces. */
  readonly isShareTaken: (workspace: string) => boolean;
  readonly take: (workspace: string) => void;
}

/** Creates a bucket with `capacity` tokens. The bucket is refilled at a rate of `perMs` tokens per millisecond. */
export function createSharedBucket(capacity: number, perMs: number, { nowMs }: Pick<Clock, 'nowMs'>): SharedBucket {
  /**
   * The tokens of each workspace which have not been refilled yet. The number of workspaces is at most twice the number
   * of tokens.
   */
  const taken = new Map<string, number>();
  let total = 0;
  let filledMs = nowMs();

  /**
   * Returns tokens to each workspace. The number of returned tokens depends on the number of used tokens of the
   * workspace.
   */
  function refill(): void {
    const elapsedMs = nowMs() - filledMs;
    if (elapsedMs < REFILL_EVERY_MS) return;
    filledMs += elapsedMs;
    const before = total;
    total = Math.max(0, before - elapsedMs * perMs);
    for (const [workspace, tokens] of taken) {
      const left = (tokens * total) / before;
      if (left < FEWEST) taken.delete(workspace);
      else taken.set(workspace, left);
    }
  }

  return {
    isEmpty: () => {
      refill();
      return total > capacity - 1;
    },
    isShareTaken: workspace => {
      refill();
      return isShareUsed(taken.get(workspace) ?? 0, total, capacity);
    },
    take: workspace => {
      taken.set(workspace, (taken.get(workspace) ?? 0) + 1);
      total++;
    },
  };
}
