/** What a value is found by: an index's name to the function that gives a value's entries in it. */
export type Indexers<P> = Readonly<Record<string, (value: P) => readonly string[]>>;

export type Store<P> = {
  readonly get: (key: string) => P | undefined;
  readonly keys: () => Iterable<string>;
  readonly values: () => Iterable<P>;
  readonly size: () => number;
  /** Values with `entry` in the named index. @throws for an index that was not declared */
  readonly byIndex: (index: string, entry: string) => P[];
  readonly set: (key: string, value: P) => void;
  readonly remove: (key: string) => void;
};

/** Most entries of an index have one key: a Set each would weigh more than what it indexes. */
type Keys = string | Set<string>;

/** Values by key and by the indexes declared. An index's function must be pure: it is asked again on removal. */
export function createStore<P>(indexers: Indexers<P> = {}): Store<P> {
  const values = new Map<string, P>();
  const indexes = new Map(Object.keys(indexers).map(name => [name, new Map<string, Keys>()]));

  function unindex(key: string, value: P): void {
    for (const [name, index] of indexes) {
      for (const entry of indexers[name]?.(value) ?? []) {
        const keys = index.get(entry);
        if (keys === key) index.delete(entry);
        else if (keys instanceof Set && keys.delete(key) && keys.size === 0) index.delete(entry);
      }
    }
  }

  function reindex(key: string, value: P): void {
    for (const [name, index] of indexes) {
      for (const entry of indexers[name]?.(value) ?? []) {
        const keys = index.get(entry);
        if (keys === undefined) index.set(entry, key);
        else if (keys instanceof Set) keys.add(key);
        else if (keys !== key) index.set(entry, new Set([keys, key]));
      }
    }
  }

  function remove(key: string): void {
    const value = values.get(key);
    if (value === undefined) return;
    unindex(key, value);
    values.delete(key);
  }

  return {
    get: key => values.get(key),
    keys: () => values.keys(),
    values: () => values.values(),
    size: () => values.size,
    byIndex: (name, entry) => {
      const index = indexes.get(name);
      if (index === undefined) throw new Error(`no index is called ${name}`);
      const keys = index.get(entry);
      if (keys === undefined) return [];
      const found = typeof keys === 'string' ? [keys] : [...keys];
      return found.map(key => values.get(key)).filter(value => value !== undefined);
    },
    set: (key, value) => {
      const old = values.get(key);
      if (old !== undefined) unindex(key, old);
      values.set(key, value);
      reindex(key, value);
    },
    remove,
  };
}
