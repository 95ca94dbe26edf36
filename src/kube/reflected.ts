import type { Logger } from '../telemetry/log.ts';
import type { Steps } from '../time/slices.ts';
import { type AnyObject, keyOf } from './object.ts';
import { isOlder } from './resource-version.ts';
import { createStore, type Indexers, type Store } from './store.ts';
import type { WatchEvent } from './watch-stream.ts';

export type Change = 'added' | 'updated' | 'deleted';

/**
 * Called after the store has changed. Handlers should only enqueue keys and must not block. Errors are logged and
 * ignored.
 */
export type ChangeHandler<P> = (change: Change, key: string, old: P | undefined, current: P | undefined) => void;

export type Entry<P> = {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly value: P;
};

/** Local state of a reflector, which never sends requests to the API server. */
export type Reflected<P> = {
  readonly store: Omit<Store<P>, 'set' | 'remove'>;
  readonly subscribe: (handler: ChangeHandler<P>) => () => void;
  /**
   * Returns the projection of an object. Undefined if the object is not required or can't be read. The latter is logged
   * as an error.
   */
  readonly project: (object: AnyObject) => Entry<P> | undefined;
  /**
   * Like `project`, but never reuses an existing object. Required if etcd was restored, because the same version may
   * have a different content.
   */
  readonly projectAnew: (object: AnyObject) => Entry<P> | undefined;
  /**
   * Replaces the state with the result of a list, calling the handlers for each difference. There is a piece for each
   * object, and `apply` must not be called between them.
   *
   * @param anew whether the list came from a server restored to an earlier state, in which case all objects are
   * reported as changed.
   */
  readonly replace: (
    entries: readonly (Entry<P> | undefined)[],
    resourceVersion: string,
    options?: { readonly anew: boolean },
  ) => Steps<void>;
  /** Applies a watch event. Events older than the known object are ignored. */
  readonly apply: (event: WatchEvent<AnyObject>) => void;
  /** Returns the resourceVersion at which the next watch should start. Undefined if there has been no list yet. */
  readonly cursor: () => string | undefined;
};

/** Creates the set of change handlers. If one of the handlers throws an error, all other handlers are still called. */
export function createHandlers<P>(log: Logger) {
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
          log.error({ err, key }, 'failed to handle an object change');
        }
      }
    },
  };
}

/** Returns a view of the store with the values only. The view does not include the internal fields of the reflector. */
function valuesOf<P>(store: Store<Entry<P>>): Reflected<P>['store'] {
  return {
    get: key => store.get(key)?.value,
    keys: store.keys,
    *values() {
      for (const { value } of store.values()) yield value;
    },
    size: store.size,
    byIndex: (index, entry) => store.byIndex(index, entry).map(({ value }) => value),
    *eachByIndex(index, entry) {
      for (const { value } of store.eachByIndex(index, entry)) yield value;
    },
    keysByIndex: store.keysByIndex,
    countsByIndex: store.countsByIndex,
  };
}

export function createReflected<P>(options: {
  /** Returns the value that should be cached. Returns undefined if the object is not required. */
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
    // Reuse existing objects because listing 100,000 objects again would require twice the memory.
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
      log.error({ err, key }, 'failed to read an object, ignoring it');
      return undefined;
    }
  }

  return {
    store: valuesOf(store),
    subscribe,
    project,
    projectAnew,
    *replace(entries, resourceVersion, { anew } = { anew: false }) {
      const listed = new Set<string | undefined>();
      for (const entry of entries) {
        yield;
        if (entry !== undefined) put(entry, anew);
        listed.add(entry?.key);
      }
      // Note that it is safe to delete Map entries while iterating.
      for (const key of store.keys()) {
        yield;
        if (!listed.has(key)) drop(key);
      }
      // If this was not completed, the next watch must not start from here.
      cursor = resourceVersion;
    },
    apply: ({ type, object }) => {
      const { resourceVersion } = object.metadata;
      // An outdated server is sending old events. Applying these events would bring back deleted objects.
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
