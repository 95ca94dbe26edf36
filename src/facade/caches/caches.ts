import { DEFAULT_INSTANCE, instanceOf } from '../../api/instance.ts';
import { KINDS, type KindName } from '../../api/kinds/kinds.ts';
import { PAUSED_ANNOTATION } from '../../api/well-known.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KubeClient } from '../../kube/client.ts';
import { createResponsibility } from '../../kube/instances/responsibility.ts';
import { type ObjectName, slimObject } from '../../kube/object.ts';
import { createReflector, type Reflector } from '../../kube/reflector.ts';
import { resourceOf } from '../../kube/resource.ts';
import { createPartSharing } from '../../kube/shared-parts.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';
import type { Cached } from './cached.ts';
import { INDEXES, type Indexes, type NamespacedKind, spaceOf } from './indexes.ts';
import { callLimits, kubeRefusal } from './kube-failures.ts';
import { createLiveLists, type ListLive } from './live-lists.ts';
import { chargeLookup, createLookups, type LookupIndex } from './lookups.ts';

/**
 * Caches contains all objects watched by the facade, including functions to look them up. Objects that another
 * installation is responsible for do not exist here, whether they are cached or read from the API server.
 */
export interface Caches {
  /** Returns the object with this name from the cache. */
  readonly get: <K extends KindName>(kind: K, name: ObjectName) => Cached<K> | undefined;
  /**
   * Returns all objects in a namespace. Results depend on the watch and may be slightly out of date. There is no list
   * of all objects in the cluster, because a call must not take longer with more tenants.
   */
  readonly list: <K extends NamespacedKind>(kind: K, namespace: string) => Cached<K>[];
  /**
   * Looks for the object with a public id. If the object is not in the cache, the API server needs to be queried,
   * because it may just have been created by another replica. The current call pays for that, because ids can be guessed
   * faster than looked up. Use `namespace` to limit the search. @throws Refusal 429, 503
   */
  readonly find: <K extends KindName>(kind: K, id: string, namespace?: string) => Promise<Cached<K> | undefined>;
  /** Same as `find`, but always queries the API server. */
  readonly findLive: <K extends KindName>(kind: K, id: string) => Promise<Cached<K> | undefined>;
  /** Same as `find`, but uses a name that was chosen by the caller. */
  readonly findNamed: <K extends KindName>(kind: K, name: ObjectName) => Promise<Cached<K> | undefined>;
  /** Same as `find`, but uses a different unique index, and doesn't charge anything. */
  readonly findBy: <K extends KindName>(kind: K, index: LookupIndex, value: string) => Promise<Cached<K> | undefined>;
  /** Reads an object from the API server, including its managed fields. @throws Refusal 503 */
  readonly live: <K extends KindName>(kind: K, name: ObjectName) => Promise<Cached<K> | undefined>;
  /**
   * Returns true if the name of an Account or a Workspace is already used by another installation. @throws Refusal 503
   */
  readonly isTaken: (kind: 'Account' | 'Workspace', name: string) => Promise<boolean>;
  /**
   * Lists objects from the API server. Use this for decisions that can't depend on the caches. A list is more expensive
   * than `live`, so select only the objects that the decision depends on.
   */
  readonly listLive: ListLive;
  /**
   * Returns all objects that have `value` in an index such as `integration` (`namespace/name`). Results depend on the
   * watch and may be slightly out of date.
   */
  readonly by: <K extends KindName>(kind: K, index: string, value: string) => Cached<K>[];
  readonly reflector: <K extends KindName>(kind: K) => Reflector<Cached<K>>;
  /** @throws Refusal 503 if a cache is not synced or has not received data for 30 s */
  readonly assertCurrent: () => void;
  /** Returns all kinds whose caches are out of date. If there are any, `assertCurrent` throws. */
  readonly staleKinds: () => readonly string[];
  /** Watches all objects until the signal is aborted. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/**
 * The duration of each watch. If there are no changes, the end of a watch shows that the API server is still reachable.
 */
const WATCH_TIMEOUT_SECONDS = 14;
/** A connection without data for this long is considered dead. Must be longer than the duration of each watch. */
const DEAD_AFTER_MS = 25_000;
/** A cache that has not received any data for this time might be stale and is no longer used for responses. */
const MUST_HEAR_WITHIN_MS = 30_000;

type Reflectors = { readonly [K in KindName]: Reflector<Cached<K>> };

const keep = <K extends KindName>(object: Cached<K>) => slimObject(object, [PAUSED_ANNOTATION]) as Cached<K>;

interface Connection {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
}

function reflect<K extends KindName>(kind: K, connection: Connection): Reflector<Cached<K>> {
  const share = createPartSharing<Cached<K>>(kind === 'Activation' ? ['integration'] : []);
  return createReflector<Cached<K>, Cached<K>>({
    ...connection,
    resource: resourceOf(kind),
    project: object => share(keep(object)),
    indexers: INDEXES[kind] as Indexes<K>,
    watchTimeoutSeconds: WATCH_TIMEOUT_SECONDS,
    inactivityMs: DEAD_AFTER_MS,
  });
}

/** Reads an object from the API server even if it belongs to another installation. @throws Refusal 503 */
type Read = <K extends KindName>(kind: K, name: ObjectName) => Promise<Cached<K> | undefined>;

function createRead(client: Pick<KubeClient, 'get'>): Read {
  return async <K extends KindName>(kind: K, name: ObjectName) => {
    try {
      return await client.get<Cached<K>>(resourceOf(kind), name, callLimits());
    } catch (cause) {
      throw kubeRefusal(cause);
    }
  };
}

/** Creates the caches for all kinds. The caches only contain objects of this installation. */
function createReflectors(connection: Connection, read: Read, instance: string) {
  const workspaces = reflect('Workspace', connection);
  const get = (_resource: object, name: ObjectName) => read('Workspace', name);
  const { assigned, namespaced, isResponsibleFor } = createResponsibility({
    instance,
    workspaces,
    client: { get: get as KubeClient['get'] },
    log: connection.log,
  });
  const within = <K extends KindName>(kind: K) => namespaced(reflect(kind, connection), spaceOf);
  const reflectors: Reflectors = {
    Account: assigned(reflect('Account', connection)),
    Workspace: assigned(workspaces),
    CatalogStream: within('CatalogStream'),
    Package: within('Package'),
    Integration: within('Integration'),
    Block: within('Block'),
    Subscription: within('Subscription'),
    Activation: within('Activation'),
  };

  /** Returns an object read from the API server unless it belongs to another installation. */
  async function ours<K extends KindName>(kind: K, object: Cached<K> | undefined): Promise<Cached<K> | undefined> {
    if (object === undefined) return undefined;
    if (kind !== 'Account' && kind !== 'Workspace') {
      return (await isResponsibleFor(spaceOf(object))) ? object : undefined;
    }
    return instanceOf(object as Cached<'Account' | 'Workspace'>) === instance ? object : undefined;
  }

  return { reflectors, isResponsibleFor, ours };
}

/** @param instance name of this installation */
export function createCaches(client: KubeClient, clock: Clock, log: Logger, instance = DEFAULT_INSTANCE): Caches {
  const kinds = Object.keys(KINDS) as KindName[];
  const read = createRead(client);
  const { reflectors, isResponsibleFor, ours } = createReflectors({ client, clock, log }, read, instance);
  const reflectorOf = <K extends KindName>(kind: K) => reflectors[kind] as unknown as Reflector<Cached<K>>;
  const lookups = createLookups({ client, indexes: INDEXES, keep });
  const list = createLiveLists({ client, keep });
  const findLive = async <K extends KindName>(kind: K, id: string, namespace?: string, index?: LookupIndex) =>
    ours(kind, await lookups.findLive(kind, id, namespace, index));
  const get: Caches['get'] = (kind, { namespace, name }) =>
    reflectorOf(kind).store.get(namespace ? `${namespace}/${name}` : name);
  const live: Caches['live'] = async (kind, name) => ours(kind, await read(kind, name));
  /** Charges the current call for a lookup before starting it. */
  const paid = async <T>(lookUp: () => Promise<T>): Promise<T> => {
    chargeLookup();
    return lookUp();
  };

  function staleKinds(): string[] {
    const now = clock.nowMs();
    return kinds.filter(kind => {
      const heardMs = reflectors[kind].lastHeardMs();
      return !reflectors[kind].hasSynced() || heardMs === undefined || now - heardMs > MUST_HEAR_WITHIN_MS;
    });
  }

  return {
    get,
    list: (kind, namespace) => reflectorOf(kind).store.byIndex('namespace', namespace),
    by: (kind, index, value) => reflectorOf(kind).store.byIndex(index, value),
    find: async (kind, id, namespace) => {
      const known = reflectorOf(kind).store.byIndex('publicId', id);
      const found = known.find(object => namespace === undefined || object.metadata.namespace === namespace);
      return found ?? paid(() => findLive(kind, id, namespace));
    },
    findLive: (kind, id) => paid(() => findLive(kind, id)),
    findNamed: async (kind, name) => get(kind, name) ?? paid(() => live(kind, name)),
    findBy: async (kind, index, value) =>
      reflectorOf(kind).store.byIndex(index, value)[0] ?? (await findLive(kind, value, undefined, index)),
    live,
    isTaken: async (kind, name) => {
      const object: Cached<'Account' | 'Workspace'> | undefined = await read(kind, { name });
      return object !== undefined && instanceOf(object) !== instance;
    },
    listLive: async (kind, namespace, fields) =>
      (await isResponsibleFor(namespace)) ? list(kind, namespace, fields) : [],
    reflector: reflectorOf,
    staleKinds,
    assertCurrent: () => {
      if (staleKinds().length > 0) {
        throw new Refusal('unavailable', 'The cache of the custom resources might be out of date. Try again.');
      }
    },
    run: async signal => {
      await Promise.all(kinds.map(kind => reflectors[kind].run(signal)));
    },
  };
}
