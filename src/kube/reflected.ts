import type { Logger } from '../telemetry/log.ts';
import { type AnyObject, keyOf } from './object.ts';
import { isOlder } from './resource-version.ts';
import { createStore, type Indexers, type Store } from './store.ts';
import type { WatchEvent } from './watch-stream.ts';

export type Change = 'added' | 'updated' | 'deleted';

/** Called after the store has changed. Must only enqueue and not wait. Errors are logged and dropped. */
export type ChangeHandler<P> = (change: Change, key: string, old: P | undefined, current: P | undefined) => void;

export type Entry<P> = {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly value: P;
};

/** The local state of a reflector, without fetching: its pure half. */
export type Reflected<P> = {
  readonly store: Omit<Store<P>, 'set' | 'remove'>;
  readonly subscribe: (handler: ChangeHandler<P>) => () => void;
  /** Projects an object. Undefined: it is not wanted, or it cannot be read (which is logged). */
  readonly project: (object: AnyObject) => Entry<P> | undefined;
  /** Projects as `project`, but ignores known objects: after a restore a version may come back with other content. */
  readonly projectAnew: (object: AnyObject) => Entry<P> | undefined;
  /**
   * Replaces the state by a list, and reports the differences.
   *
   * @param anew reports every listed object as changed, for a list from a server that went back in time
   */
  readonly replace: (
    entries: readonly (Entry<P> | undefined)[],
    resourceVersion: string,
    options?: { readonly anew: boolean },
  ) => void;
  /** Applies one event of a watch. Ignores events that are older than the known object. */
  readonly apply: (event: WatchEvent<AnyObject>) => void;
  /** Returns the resourceVersion for the next watch; undefined before the first list. */
  readonly cursor: () => string | undefined;
};

/** Creates the set of change handlers. A handler that fails does not keep the others from the change. */
function createHandlers<P>(log: Logger) {
  const handlers = new Set<ChangeHandler<P>>();
  return {
    subscribe: (handler: ChangeHandler<P>) => {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    notify: (...[change, key, old, current]: Parameters<ChangeHandler<P>>): void => {
      for (const handler of handlers) {
        try {
          handler(change, key, old, current);
        } catch (err) {
          log.error({ err, key }, 'cannot handle a change of the object');
        }
      }
    },
  };
}

/** Returns the store as its readers see it: the values without what the reflector needs. */
function valuesOf<P>(store: Store<Entry<P>>): Reflected<P>['store'] {
  return {
    get: key => store.get(key)?.value,
    keys: store.keys,
    *values() {
      for (const { value } of store.values()) yield value;
    },
    size: store.size,
    byIndex: (index, entry) => store.byIndex(index, entry).map(({ value }) => value),
  };
}

export function createReflected<P>(options: {
  /** Returns what the cache keeps of an object; undefined to drop it. */
  project: (object: AnyObject) => P | undefined;
  indexers?: Indexers<P> | undefined;
  log: Logger;
}): Reflected<P> {
  const { log } = options;
  const indexers = Object.entries(options.indexers ?? {}).map(
    ([name, entries]) => [name, (entry: Entry<P>) => entries(entry.value)] as const,
  );
  const store = createStore<Entry<P>>(Object.fromEntries(indexers));
  const { subscribe, notify } = createHandlers<P>(log);
  let cursor: string | undefined;

  function put(entry: Entry<P>, anew = false): void {
    const old = store.get(entry.key);
    if (!anew && old?.uid === entry.uid && old.resourceVersion === entry.resourceVersion) return;
    store.set(entry.key, entry);
    notify(old === undefined ? 'added' : 'updated', entry.key, old?.value, entry.value);
  }

  function drop(key: string): void {
    const old = store.get(key);
    if (old === undefined) return;
    store.remove(key);
    notify('deleted', key, old.value, undefined);
  }

  function project(object: AnyObject): Entry<P> | undefined {
    const { uid, resourceVersion } = object.metadata;
    // Reuse known objects in a relist, so that 100,000 objects are not in memory twice.
    const known = store.get(keyOf(object.metadata));
    return known?.uid === uid && known.resourceVersion === resourceVersion ? known : projectAnew(object);
  }

  function projectAnew(object: AnyObject): Entry<P> | undefined {
    const key = keyOf(object.metadata);
    const { uid, resourceVersion } = object.metadata;
    try {
      const value = options.project(object);
      return value === undefined ? undefined : { key, uid, resourceVersion, value };
    } catch (err) {
      log.error({ err, key }, 'cannot read the object; leaving it out');
      return undefined;
    }
  }

  return {
    store: valuesOf(store),
    subscribe,
    project,
    projectAnew,
    replace: (entries, resourceVersion, { anew } = { anew: false }) => {
      const listed = new Set<string>();
      cursor = resourceVersion;
      for (const entry of entries) {
        if (entry === undefined) continue;
        listed.add(entry.key);
        put(entry, anew);
      }
      // Deleting from a Map while iterating over it is safe.
      for (const key of store.keys()) if (!listed.has(key)) drop(key);
    },
    apply: ({ type, object }) => {
      const { resourceVersion } = object.metadata;
      // A server that is behind repeats the past. Following it would bring deleted objects back.
      if (cursor !== undefined && isOlder(resourceVersion, cursor)) return;
      cursor = resourceVersion;
      if (type === 'BOOKMARK') return;
      const entry = type === 'DELETED' ? undefined : project(object);
      if (entry === undefined) drop(keyOf(object.metadata));
      else put(entry);
    },
    cursor: () => cursor,
  };
}
