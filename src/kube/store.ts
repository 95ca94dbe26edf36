/** The indexes of a store. Each function should return the index entries for a value. */
export type Indexers<P> = Readonly<Record<string, (value: P) => readonly string[]>>;

export type Store<P> = {
  readonly get: (key: string) => P | undefined;
  readonly keys: () => Iterable<string>;
  readonly values: () => Iterable<P>;
  readonly size: () => number;
  /** Returns all values with `entry` in the given index. @throws if this index does not exist */
  readonly byIndex: (index: string, entry: string) => P[];
  /**
   * Yields the same values as `byIndex`, but each of them is only looked up when it is needed. For use in slices, because
   * there may be 100,000 values. Includes all values that get this entry in the meantime, so nothing is missed if one
   * value replaces another. Does not yield any values that lose it before their step, and none twice.
   *
   * @throws if this index does not exist
   */
  readonly eachByIndex: (index: string, entry: string) => Generator<P, void, undefined>;
  /** Returns the keys for these values. @throws if this index does not exist */
  readonly keysByIndex: (index: string, entry: string) => string[];
  /** Returns the number of values for each entry of the given index. @throws if this index does not exist */
  readonly countsByIndex: (index: string) => Iterable<readonly [entry: string, count: number]>;
  readonly set: (key: string, value: P) => void;
  readonly remove: (key: string) => void;
};

/**
 * The keys of an entry in the index. Most of the entries only have a single key. Using a Set for each entry would
 * require more memory than the values themselves.
 */
type Keys = string | Set<string>;

/**
 * Creates a store for values, which can be looked up by key or by index entry. The index functions must be pure because
 * they are called again when removing a value.
 */
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

  function indexNamed(name: string): ReadonlyMap<string, Keys> {
    const index = indexes.get(name);
    if (index === undefined) throw new Error(`no index is called ${name}`);
    return index;
  }

  function keysByIndex(name: string, entry: string): string[] {
    const keys = indexNamed(name).get(entry);
    if (keys === undefined) return [];
    return typeof keys === 'string' ? [keys] : [...keys];
  }

  return {
    get: key => values.get(key),
    keys: () => values.keys(),
    values: () => values.values(),
    size: () => values.size,
    byIndex(name, entry) {
      const keys = indexNamed(name).get(entry);
      const found: P[] = [];
      for (const key of typeof keys === 'string' ? [keys] : (keys ?? [])) {
        const value = values.get(key);
        if (value !== undefined) found.push(value);
      }
      return found;
    },
    eachByIndex: (name, entry) => eachOf(indexNamed(name), entry, values),
    keysByIndex,
    *countsByIndex(name) {
      for (const [entry, keys] of indexNamed(name)) yield [entry, typeof keys === 'string' ? 1 : keys.size];
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

function* eachOf<P>(
  index: ReadonlyMap<string, Keys>,
  entry: string,
  values: ReadonlyMap<string, P>,
): Generator<P, void, undefined> {
  const seen = new Set<string>();
  let keys: Keys | undefined;
  do {
    keys = index.get(entry);
    // A Set also yields the values added to it in the meantime. A changed value is added again.
    for (const key of typeof keys === 'string' ? [keys] : (keys ?? [])) {
      if (seen.has(key)) continue;
      seen.add(key);
      yield values.get(key) as P;
    }
  } while (index.get(entry) !== keys);
}
