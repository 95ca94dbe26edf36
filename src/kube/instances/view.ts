import type { Logger } from '../../telemetry/log.ts';
import { createHandlers } from '../reflected.ts';
import type { Reflector } from '../reflector.ts';

/** The visible objects of a cache. The view can be used like a separate cache. */
export type View<P> = Reflector<P> & {
  /** Reports the objects of a namespace as added or deleted when they become visible or invisible. */
  readonly turn: (namespace: string, visible: boolean) => void;
};

/**
 * Returns a view of a cache with all values for which the filter returns true. The filter is used when values are read,
 * so we don't need to store anything twice.
 *
 * @param createFilter this is called whenever more than one value is read so that a filter is able to remember its last
 * answer
 * @param options.size counts the visible values. Set this if it is possible without looking at each of them.
 */
export function createView<P>(
  reflector: Reflector<P>,
  createFilter: () => (value: P) => boolean,
  log: Logger,
  options: { readonly size?: () => number } = {},
): View<P> {
  const { store } = reflector;
  const handlers = createHandlers<P>(log);
  const visible = (value: P | undefined): P | undefined =>
    value !== undefined && createFilter()(value) ? value : undefined;

  reflector.subscribe((_change, key, old, current) => {
    const [before, after] = [visible(old), visible(current)];
    if (before === undefined && after === undefined) return;
    handlers.notify(before === undefined ? 'added' : after === undefined ? 'deleted' : 'updated', key, before, after);
  });

  function* values(): Generator<P> {
    const filter = createFilter();
    for (const value of store.values()) if (filter(value)) yield value;
  }

  function* keys(): Generator<string> {
    const filter = createFilter();
    for (const key of store.keys()) if (filter(store.get(key) as P)) yield key;
  }

  function size(): number {
    let count = 0;
    for (const _ of values()) count++;
    return count;
  }

  return {
    ...reflector,
    store: {
      get: key => visible(store.get(key)),
      keys,
      values,
      size: options.size ?? size,
      byIndex: (index, entry) => store.byIndex(index, entry).filter(createFilter()),
      *eachByIndex(index, entry) {
        for (const value of store.eachByIndex(index, entry)) if (visible(value) !== undefined) yield value;
      },
      keysByIndex: (index, entry) =>
        store.keysByIndex(index, entry).filter(key => visible(store.get(key)) !== undefined),
      *countsByIndex(index) {
        for (const [entry] of store.countsByIndex(index)) {
          const count = store.byIndex(index, entry).filter(createFilter()).length;
          if (count > 0) yield [entry, count];
        }
      },
    },
    subscribe: handlers.subscribe,
    turn: (namespace, isVisible) => {
      for (const key of store.keysByIndex('namespace', namespace)) {
        const value = store.get(key);
        if (isVisible) handlers.notify('added', key, undefined, value);
        else handlers.notify('deleted', key, value, undefined);
      }
    },
  };
}
