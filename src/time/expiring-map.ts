/** Values that are kept for a time, at most `entries` of them; beyond, the one set longest ago goes. */
export interface ExpiringMap<V> {
  /** The value of `key` if it was set less than `ttlMs` ago. */
  readonly get: (key: string) => V | undefined;
  readonly set: (key: string, value: V) => void;
  readonly delete: (key: string) => void;
}

export function createExpiringMap<V>(options: { ttlMs: number; entries: number; nowMs: () => number }): ExpiringMap<V> {
  const { ttlMs, entries, nowMs } = options;
  const held = new Map<string, { value: V; untilMs: number }>();
  return {
    get(key) {
      const entry = held.get(key);
      return entry === undefined || nowMs() >= entry.untilMs ? undefined : entry.value;
    },
    set(key, value) {
      // Deleted first, so that the order of the map is the order of setting.
      held.delete(key);
      held.set(key, { value, untilMs: nowMs() + ttlMs });
      if (held.size > entries) {
        const oldest = held.keys().next();
        if (!oldest.done) held.delete(oldest.value);
      }
    },
    delete(key) {
      held.delete(key);
    },
  };
}
