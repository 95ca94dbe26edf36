/** Counts in a plain map, for a metric that takes them over when it is scraped: a label costs a hash at each `inc`. */
export interface Tally<K> {
  readonly add: (key: K) => void;
  /** What was counted since the last time. */
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
