import { type Caches, INDEXES } from '../../../src/controller/caches/caches.ts';
import { type AnyObject, keyOf } from '../../../src/kube/object.ts';
import { createStore, type Indexers } from '../../../src/kube/store.ts';

type Stores = {
  readonly [K in keyof Caches]: { set: (key: string, value: unknown) => void; remove: (key: string) => void };
};

/** Creates empty caches which are filled by a test. */
export function createTestCaches() {
  const stores = {
    ...Object.fromEntries(
      Object.entries(INDEXES).map(([kind, indexers]) => [kind, createStore(indexers as Indexers<AnyObject>)]),
    ),
    namespaces: createStore<object>(),
    ingressKeys: createStore<{ readonly namespace: string }>({ namespace: ({ namespace }) => [namespace] }),
  } as unknown as Stores;
  const caches = Object.fromEntries(Object.entries(stores).map(([kind, store]) => [kind, { store }]));
  return {
    caches: caches as unknown as Caches,
    stores,
    put: (kind: keyof Caches, object: AnyObject): void => stores[kind].set(keyOf(object.metadata), object),
    remove: (kind: keyof Caches, object: AnyObject): void => stores[kind].remove(keyOf(object.metadata)),
  };
}
