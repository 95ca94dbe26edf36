import type { Logger } from '../telemetry/log.ts';
import { type AnyObject, keyOf } from './object.ts';
import { isOlder } from './resource-version.ts';
import { createStore, type Indexers, type Store } from './store.ts';
import type { WatchEvent } from './watch-stream.ts';

export type Change = 'added' | 'updated' | 'deleted';

/**
 * Called after the store has changed. A handler should only enqueue keys and must not block. Errors are logged and
 * ignored.
 */
export type ChangeHandler<P> = (change: Change, key: string, old: P | undefined, current: P | undefined) => void;

export type Entry<P> = {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly value: P;
};

/** The local state of a reflector. It does not send any requests to the API server. */
export type Reflected<P> = {
  readonly store: Omit<Store<P>, 'set' | 'remove'>;
  readonly subscribe: (handler: ChangeHandler<P>) => () => void;
  /**
   * Returns the projection of an object. Returns undefined if the object is not needed, or if it cannot be read. In the
   * second case, the error is logged.
   */
  readonly project: (object: AnyObject) => Entry<P> | undefined;
  /**
   * Like `project`, but does not reuse objects that are already known. This is required after etcd is restored, because
   * the same version may have different content.
   */
  readonly projectAnew: (object: AnyObject) => Entry<P> | undefined;
  /**
   * Replaces the state with the result of a list and calls the handlers for all differences.
   *
   * @param anew set to true if the list is from a server that was restored to an earlier state. In this case, all
   * objects are reported as changed.
   */
  readonly replace: (
    entries: readonly (Entry<P> | undefined)[],
    resourceVersion: string,
    options?: { readonly anew: boolean },
  ) => void;
  /** Applies one event of a watch. Events that are older than the known object are ignored. */
  readonly apply: (event: WatchEvent<AnyObject>) => void;
  /** Returns the resourceVersion that should be used for the next watch. Returns undefined before the first list. */
  readonly cursor: () => string | undefined;
};

/** Creates the set of change handlers. If a handler throws an error, the other handlers are still called. */
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

/** Returns a view of the store that only contains the values, without the fields that are internal to the reflector. */
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
  /** Returns the value that is kept in the cache, or undefined if the object is not needed. */
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
    // We reuse objects that are already known, so that 100,000 objects are not stored in memory twice during a relist.
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
      // Note that it is safe to delete entries from a Map during the iteration.
      for (const key of store.keys()) if (!listed.has(key)) drop(key);
    },
    apply: ({ type, object }) => {
      const { resourceVersion } = object.metadata;
      // The server is out of date and is sending old events. If we applied them, objects that have been deleted would
      // be added again.
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
