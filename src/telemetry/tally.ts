/**
 * Keeps counts in a plain map until a scrape moves them into a metric, because a metric's `inc` hashes its labels on
 * every call.
 */
export interface Tally<K> {
  readonly add: (key: K) => void;
  /** Calls `each` with every count since the last call, and resets the counts. */
  readonly take: (each: (key: K, count: number) => void) => void;
}

export function createTally<K>(): Tally<K> {
  const counts = new Map<K, number>();
  return {
    add(key) {
      counts.set(key, (counts.get(key) ?? 0) + 1);
    },
    take(each) {
      for (const [key, count] of counts) each(key, count);
      counts.clear();
    },
  };
}
