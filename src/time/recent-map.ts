/** RecentMap is a map that forgets keys that haven't been used for some time. */
export interface RecentMap<V> {
  /** Counts as a use of the key. */
  readonly get: (key: string) => V | undefined;
  readonly set: (key: string, value: V) => void;
  /** The number of keys kept in memory. */
  readonly size: () => number;
}

/** Creates a map that remembers at least the last `entries` keys, and at most twice as many. */
export function createRecentMap<V>(entries: number): RecentMap<V> {
  // Two generations rather than an exact order, since moving a key to the end of a map on each use would cost more.
  let recent = new Map<string, V>();
  let older = new Map<string, V>();

  function set(key: string, value: V): void {
    if (recent.size >= entries) {
      older = recent;
      recent = new Map();
    }
    recent.set(key, value);
  }

  return {
    get(key) {
      const value = recent.get(key);
      if (value !== undefined) return value;
      const kept = older.get(key);
      if (kept !== undefined) set(key, kept);
      return kept;
    },
    set,
    size: () => recent.size + older.size,
  };
}
