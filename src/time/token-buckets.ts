import { createRecentMap } from './recent-map.ts';

/** The remaining points of a key. Times are in whole seconds, rounded up. */
export interface BucketState {
  /** The number of points that are left, rounded down. */
  readonly left: number;
  /** The time until all points are available again. At least 1. */
  readonly fullInSeconds: number;
  /** The time until the cost can be charged. At least 1. */
  readonly retryInSeconds: number;
}

/** TokenBuckets contains a bucket of points for each key. Points come back evenly over time. */
export interface TokenBuckets {
  /**
   * Charges `cost` points or returns false without charging any points. Does not allocate memory for keys that are
   * already in memory.
   */
  readonly take: (key: string, cost: number) => boolean;
  /** Returns points that were charged. Does nothing for keys which are no longer in memory. */
  readonly give: (key: string, points: number) => void;
  readonly stateOf: (key: string, cost: number) => BucketState;
}

interface Bucket {
  points: number;
  atMs: number;
}

/**
 * Creates buckets with `capacity` points, which are initially full. An empty bucket is full again after `refillMs`.
 * Costs higher than `capacity` are limited to `capacity`. If each key has its own capacity, a change applies to the
 * next call. The most recently used keys are kept in memory (at least `entries`, and at most twice as many). The
 * buckets of all other keys are full. No timers are used.
 */
export function createTokenBuckets(options: {
  readonly capacity: number | ((key: string) => number);
  readonly refillMs: number | ((key: string) => number);
  readonly entries: number;
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number;
}): TokenBuckets {
  const { capacity, refillMs, entries, nowMs } = options;
  const capacityOf = typeof capacity === 'number' ? () => capacity : capacity;
  const refillMsOf = typeof refillMs === 'number' ? () => refillMs : refillMs;
  const buckets = createRecentMap<Bucket>(entries);

  function start(key: string, now: number): Bucket {
    const bucket = { points: capacityOf(key), atMs: now };
    buckets.set(key, bucket);
    return bucket;
  }

  function refilled(key: string): Bucket {
    const now = nowMs();
    const bucket = buckets.get(key) ?? start(key, now);
    const most = capacityOf(key);
    bucket.points = Math.min(most, bucket.points + ((now - bucket.atMs) * most) / refillMsOf(key));
    bucket.atMs = now;
    return bucket;
  }

  return {
    take(key, cost) {
      const bucket = refilled(key);
      const price = Math.min(cost, capacityOf(key));
      if (bucket.points < price) return false;
      bucket.points -= price;
      return true;
    },
    give(key, points) {
      const bucket = buckets.get(key);
      // The capacity is applied before the points are used.
      if (bucket !== undefined) bucket.points += points;
    },
    stateOf(key, cost) {
      const { points } = refilled(key);
      const most = capacityOf(key);
      const secondsFor = (more: number) => Math.max(1, Math.ceil((more * refillMsOf(key)) / most / 1_000));
      return {
        left: Math.floor(points),
        fullInSeconds: secondsFor(most - points),
        retryInSeconds: secondsFor(Math.min(cost, most) - points),
      };
    },
  };
}
