/**
 * Stores counts in a plain map and moves them into a metric for each scrape. Required because the `inc` function of a
 * metric hashes its labels on every call.
 */
export interface Tally<K> {
  readonly add: (key: K, count?: number) => void;
  /** Calls `each` for all counts since the last call, and resets them. */
  readonly take: (each: (key: K, count: number) => void) => void;
}

export function createTally<K>(): Tally<K> {
  const counts = new Map<K, number>();
  return {
    add(key, count = 1) {
      counts.set(key, (counts.get(key) ?? 0) + count);
    },
    take(each) {
      for (const [key, count] of counts) each(key, count);
      counts.clear();
    },
  };
}
