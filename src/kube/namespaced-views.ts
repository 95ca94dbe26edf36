import type { Logger } from '../telemetry/log.ts';
import { aborted, type Clock } from '../time/clock.ts';
import type { KubeClient } from './client.ts';
import { createListTurns, createNamespaceWatch, type NamespaceAccess, type NamespaceWatch } from './namespace-watch.ts';
import type { AnyObject } from './object.ts';
import { createHandlers } from './reflected.ts';
import type { Reflector } from './reflector.ts';
import type { Resource } from './resource.ts';
import { createStore, type Indexers } from './store.ts';

/**
 * NamespacedViews is a cache for a resource in some of the namespaces. This cache is used if a process is not allowed
 * to list the resource in all namespaces.
 */
export interface NamespacedViews<T extends AnyObject> {
  /**
   * Creates a cache for all objects for which `project` returns a value. Each namespace uses a single watch that is
   * shared by all views. Call this before the first `open`.
   */
  readonly view: <P>(project: (object: T) => P | undefined, indexers?: Indexers<P>) => Reflector<P>;
  /** Starts to watch a namespace. Does nothing if it is open. */
  readonly open: (namespace: string) => void;
  /** Ends the watch for a namespace and removes its objects from all views. */
  readonly close: (namespace: string) => void;
  readonly access: (namespace: string) => NamespaceAccess;
  /** Returns true if the objects in this namespace have been listed since it was opened. */
  readonly wasRead: (namespace: string) => boolean;
  /** Same as `wasRead`, but false after a `relist` that has failed, until the objects have been listed again. */
  readonly isCurrent: (namespace: string) => boolean;
  /** Returns the last error if the API server has failed to list this namespace for 10 seconds, or has not responded. */
  readonly failure: (namespace: string) => unknown;
  /** Calls `handler` when the access to a namespace changes, or when it begins to fail. Returns a function to unsubscribe. */
  readonly onAccess: (handler: (namespace: string) => void) => () => void;
  /**
   * Lists the objects in the namespace immediately, without waiting for the current backoff. Resolves as well if this
   * is forbidden or fails.
   */
  readonly retry: (namespace: string) => Promise<void>;
}

/** The parts of an object cached by a view. */
type View = {
  readonly project: (object: AnyObject) => unknown;
  readonly put: (key: string, old: unknown, current: unknown) => void;
};

function createView<P>(project: (object: never) => P | undefined, indexers: Indexers<P>, log: Logger) {
  const store = createStore<P>(indexers);
  const { subscribe, notify } = createHandlers<P>(log);
  const put = (key: string, old: P | undefined, current: P | undefined) => {
    if (current !== undefined) store.set(key, current);
    else if (old !== undefined) store.remove(key);
    else return;
    notify(old === undefined ? 'added' : current === undefined ? 'deleted' : 'updated', key, old, current);
  };
  return { view: { project, put } as View, store, subscribe };
}

/** @param ready resolves once the namespaces that exist at the start are open */
export function createNamespacedViews<T extends AnyObject>(options: {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  readonly fieldSelector?: string;
  readonly ready: Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
}): NamespacedViews<T> {
  const { resource, clock, log } = options;
  const takeTurn = createListTurns(clock);
  const views: View[] = [];
  const opened = new Map<string, NamespaceWatch>();
  const listeners = new Set<(namespace: string) => void>();
  let running: Promise<void> | undefined;
  let stopped = false;
  let hasSynced = false;
  const synced = options.ready
    .then(() => Promise.all([...opened.values()].map(({ settled }) => settled)))
    .then(() => {
      hasSynced = true;
    });

  function open(namespace: string): void {
    if (stopped || opened.has(namespace)) return;
    const watch = createNamespaceWatch({
      ...options,
      takeTurn,
      namespace,
      project: object => views.map(({ project }) => project(object)),
      onChange: (key, old, current) => views.forEach(({ put }, index) => put(key, old?.[index], current?.[index])),
      onAccess: () => {
        for (const listener of listeners) listener(namespace);
      },
    });
    opened.set(namespace, watch);
  }

  /** All views contain it, so only one of them needs to be checked. */
  function run(signal: AbortSignal): Promise<void> {
    running ??= aborted(signal).then(async () => {
      stopped = true;
      await Promise.all([...opened.values()].map(({ stop }) => stop()));
    });
    return running;
  }

  const lastHeardMs = () => {
    const heard = [...opened.values()].flatMap(watch => watch.lastHeardMs() ?? []);
    return Math.min(clock.nowMs(), ...heard);
  };
  const relist = async () => {
    await Promise.all([...opened.values()].map(watch => watch.relist()));
  };

  return {
    view<P>(project: (object: T) => P | undefined, indexers: Indexers<P> = {}) {
      const { view, store, subscribe } = createView<P>(project, indexers, log);
      views.push(view);
      return { resource, store, subscribe, run, synced, hasSynced: () => hasSynced, lastHeardMs, relist };
    },
    open,
    close(namespace) {
      const watch = opened.get(namespace);
      opened.delete(namespace);
      watch?.close();
    },
    access: namespace => opened.get(namespace)?.access() ?? 'closed',
    wasRead: namespace => opened.get(namespace)?.wasRead() === true,
    isCurrent: namespace => opened.get(namespace)?.isCurrent() === true,
    failure: namespace => opened.get(namespace)?.failure(),
    onAccess(handler) {
      listeners.add(handler);
      return () => listeners.delete(handler);
    },
    retry: async namespace => opened.get(namespace)?.relist(),
  };
}
