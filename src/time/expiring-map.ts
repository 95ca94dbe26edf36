/**
 * Creates a map in which each value expires `ttlMs` after it was set. With more than `entries` values, the oldest value
 * is removed.
 */
export function createExpiringMap<V>(options: { ttlMs: number; entries: number; nowMs: () => number }) {
  const { ttlMs, entries, nowMs } = options;
  const held = new Map<string, { value: V; untilMs: number }>();
  return {
    get(key: string): V | undefined {
      const entry = held.get(key);
      if (entry === undefined || nowMs() < entry.untilMs) return entry?.value;
      held.delete(key);
      return undefined;
    },
    set(key: string, value: V): void {
      // Delete the key first so that entries stay in the order they were set.
      held.delete(key);
      held.set(key, { value, untilMs: nowMs() + ttlMs });
      if (held.size > entries) {
        const oldest = held.keys().next();
        if (!oldest.done) held.delete(oldest.value);
      }
    },
    delete: (key: string): boolean => held.delete(key),
  };
}
