import { FINALIZER, PAUSED_ANNOTATION } from '../../../src/api/well-known.ts';
import { type Cached, type Caches, pairKey } from '../../../src/controller/caches/caches.ts';
import { isPaused } from '../../../src/controller/context/paused.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { type AnyObject, keyOf } from '../../../src/kube/object.ts';
import { createStore, type Indexers, type Store } from '../../../src/kube/store.ts';

/** The kinds of the model. An account and a workspace exist from the start. */
export type ModelKind = 'CatalogStream' | 'Package' | 'Integration' | 'Block' | 'Subscription' | 'Activation';

type WorldKind = ModelKind | 'Account' | 'Workspace';
export type ModelObject<K extends WorldKind> = Cached<K>;

const byNamespace = ({ metadata }: AnyObject) => [metadata.namespace ?? ''];

/** The API server of the model. It contains the objects, including data that Kubernetes and the controller write. */
export type Objects = ReturnType<typeof createObjects>;

export function createObjects(nowMs: () => number) {
  const stores = {} as Record<WorldKind | 'namespaces' | 'signingSecrets' | 'ingressKeys', Store<never>>;
  const stored = <P>(kind: keyof typeof stores, indexers: Indexers<P>) => {
    stores[kind] = createStore<P>(indexers) as unknown as Store<never>;
  };
  stored('Account', {});
  stored<ModelObject<'Workspace'>>('Workspace', { account: ({ spec }) => [spec.account] });
  for (const kind of ['CatalogStream', 'Package', 'Block'] as const) {
    stored<AnyObject>(kind, { namespace: byNamespace });
  }
  stored<ModelObject<'Integration'>>('Integration', {
    namespace: byNamespace,
    publicId: ({ metadata }) => [publicId('Integration', metadata.namespace ?? '', metadata.name)],
  });
  stored<ModelObject<'Subscription'>>('Subscription', {
    namespace: byNamespace,
    producer: ({ spec }) => [spec.producer],
    integration: ({ spec }) => [`${spec.producer}/${spec.integration}`],
    secretFor: () => [],
  });
  stored<ModelObject<'Activation'>>('Activation', {
    namespace: byNamespace,
    integration: ({ metadata, spec }) => [`${metadata.namespace}/${spec.integration}`],
    pair: ({ metadata, spec }) => [pairKey(metadata.namespace ?? '', spec.integration, spec.groupKey)],
  });
  stored('namespaces', {});
  stored('signingSecrets', {});
  stored('ingressKeys', { namespace: () => [] });

  let versions = 0;
  let born = 0;
  const nextVersion = () => String(++versions);

  const storeOf = <K extends WorldKind>(kind: K) => stores[kind] as unknown as Store<ModelObject<K>>;

  function write<K extends WorldKind>(kind: K, object: ModelObject<K>): ModelObject<K> {
    const next = { ...object, metadata: { ...object.metadata, resourceVersion: nextVersion() } };
    storeOf(kind).set(keyOf(next.metadata), next);
    return next;
  }

  function make<K extends WorldKind>(kind: K, name: string, namespace: string | undefined, spec: unknown) {
    const metadata = {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid: `uid-${++born}`,
      generation: 1,
      creationTimestamp: new Date(nowMs()).toISOString(),
      finalizers: [FINALIZER],
    };
    return write(kind, { metadata, spec } as unknown as ModelObject<K>);
  }

  function changeMeta<K extends WorldKind>(kind: K, key: string, metadata: Partial<AnyObject['metadata']>): void {
    const object = storeOf(kind).get(key) as ModelObject<K>;
    write(kind, { ...object, metadata: { ...object.metadata, ...metadata } });
  }

  /** The stores read by the controller's reconcilers, without any watch. */
  const caches = Object.fromEntries(
    Object.entries(stores).map(([kind, store]) => [kind, { store }]),
  ) as unknown as Caches;

  return {
    caches,

    addAccount(name: string, spec: ModelObject<'Account'>['spec']): void {
      make('Account', name, undefined, spec);
    },
    changeAccount(name: string, spec: ModelObject<'Account'>['spec']): void {
      const object = storeOf('Account').get(name) as ModelObject<'Account'>;
      write('Account', { ...object, spec });
    },
    addWorkspace(name: string, account: string): void {
      make('Workspace', name, undefined, { account });
      (stores.namespaces as unknown as Store<object>).set(name, { workspace: name, deleting: false });
    },
    workspace: (name: string): ModelObject<'Workspace'> | undefined => storeOf('Workspace').get(name),
    setPaused: (name: string, paused: boolean): void =>
      changeMeta('Workspace', name, { annotations: { [PAUSED_ANNOTATION]: String(paused) } }),
    /** Whether only closing changes of the object are applied. */
    isPaused: (name: string): boolean => isPaused(caches, name),
    accounts: (): ModelObject<'Account'>[] => [...storeOf('Account').values()],
    get: <K extends ModelKind>(kind: K, key: string): ModelObject<K> | undefined => storeOf(kind).get(key),
    /** Returns the objects, sorted by age. */
    list: <K extends ModelKind>(kind: K, namespace: string): ModelObject<K>[] =>
      storeOf(kind).byIndex('namespace', namespace),
    subscriptionsTo: (workspace: string): ModelObject<'Subscription'>[] =>
      storeOf('Subscription').byIndex('producer', workspace),
    activationsOf: (pair: string): ModelObject<'Activation'>[] => storeOf('Activation').byIndex('pair', pair),

    /** Server-side apply: creates the object or changes its spec. The same spec does not change anything. */
    apply<K extends ModelKind>(kind: K, namespace: string, name: string, spec: ModelObject<K>['spec']): void {
      const object = storeOf(kind).get(`${namespace}/${name}`);
      if (object === undefined) make(kind, name, namespace, spec);
      else if (JSON.stringify(object.spec) !== JSON.stringify(spec)) {
        const generation = (object.metadata.generation ?? 0) + 1;
        write(kind, { ...object, spec, metadata: { ...object.metadata, generation } });
      }
    },
    /**
     * Similar to `kubectl delete` for an object with a finalizer: the object exists until the controller removes the
     * finalizer.
     */
    markDeleting: (kind: ModelKind | 'Workspace', key: string): void =>
      changeMeta(kind, key, { deletionTimestamp: new Date(nowMs()).toISOString() }),
    remove: (kind: ModelKind | 'Workspace', key: string): void => {
      versions++;
      storeOf(kind).remove(key);
    },
    /** The version, which increases with every change. */
    version: () => versions,
    /** Writes a status, like the controller, even if the object was recreated. Returns the current object. */
    writeStatus(kind: ModelKind, key: string, status: object): AnyObject {
      const object = storeOf(kind).get(key);
      if (object === undefined) throw new Error(`${kind} ${key} does not exist`);
      return write(kind, { ...object, status } as ModelObject<typeof kind>);
    },
  };
}
