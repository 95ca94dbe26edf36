import type { KindName } from '../../api/kinds/kinds.ts';
import { PAUSED_ANNOTATION } from '../../api/well-known.ts';
import { activationId, blockId, publicId, tenantId } from '../../core/ids/ids.ts';
import { addressKey } from '../../core/ids/invitation-names.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type ObjectName, slimObject } from '../../kube/object.ts';
import { createReflector, type Reflector } from '../../kube/reflector.ts';
import { createPartSharing } from '../../kube/shared-parts.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';
import { type Cached, RESOURCES } from './cached.ts';
import { CALL_WITHIN_MS, kubeRefusal } from './kube-failures.ts';
import { createLiveLists, type ListLive } from './live-lists.ts';
import { createLookups } from './lookups.ts';

/** Caches contains all objects that the facade watches, and functions to find them. */
export interface Caches {
  /** Returns an object from the cache by name. */
  readonly get: <K extends KindName>(kind: K, name: ObjectName) => Cached<K> | undefined;
  /**
   * Returns the objects in a namespace, or all objects if the kind is cluster-scoped. Note that the result may be
   * slightly out of date because it depends on the watch.
   */
  readonly list: <K extends KindName>(kind: K, namespace?: string) => Cached<K>[];
  /**
   * Finds an object by public id. If it is not in the cache, the API server is asked for a list. We do this because
   * another replica may have just created the object. The `namespace` can be used to limit the search.
   */
  readonly find: <K extends KindName>(kind: K, id: string, namespace?: string) => Promise<Cached<K> | undefined>;
  /**
   * Finds an object in the same way as `find`, but without using the cache. This is used so that the response time does
   * not reveal whether an object exists.
   */
  readonly findLive: <K extends KindName>(kind: K, id: string) => Promise<Cached<K> | undefined>;
  /** Finds an object by a unique index such as `tokenHash` in the same way as `find`. */
  readonly findBy: <K extends KindName>(kind: K, index: string, value: string) => Promise<Cached<K> | undefined>;
  /** Reads an object with its managed fields from the API server. @throws Refusal 503 */
  readonly live: <K extends KindName>(kind: K, name: ObjectName) => Promise<Cached<K> | undefined>;
  /**
   * Lists objects from the API server. It is used for decisions that must not depend on the caches, and is more
   * expensive than `live`.
   */
  readonly listLive: ListLive;
  /**
   * Returns the objects that have `value` in an index such as `integration` (`namespace/name`). Note that the result
   * may be slightly out of date because it depends on the watch.
   */
  readonly by: <K extends KindName>(kind: K, index: string, value: string) => Cached<K>[];
  readonly reflector: <K extends KindName>(kind: K) => Reflector<Cached<K>>;
  /** @throws Refusal 503 if a cache is not synced or has not received data for 30 s */
  readonly assertCurrent: () => void;
  /** Returns the kinds whose caches are not current. `assertCurrent` throws if there are any. */
  readonly staleKinds: () => readonly string[];
  /** Watches the objects until the signal is aborted. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/**
 * The duration of a watch. If there are no changes, the end of the watch shows that the API server is still reachable.
 */
const WATCH_TIMEOUT_SECONDS = 14;
/**
 * A connection is considered dead if it has not received data for this time. This must be longer than the duration of a
 * watch.
 */
const DEAD_AFTER_MS = 25_000;
/** A cache may be stale if it has not received data for this time. It is then no longer used for answers. */
const MUST_HEAR_WITHIN_MS = 30_000;

type Indexes<K extends KindName> = Readonly<Record<string, (object: Cached<K>) => readonly string[]>>;

const spaceOf = (object: { metadata: { namespace?: string | undefined } }): string => object.metadata.namespace ?? '';
const byNamespace = { namespace: (object: { metadata: { namespace?: string | undefined } }) => [spaceOf(object)] };

function hashed<K extends 'CatalogStream' | 'Package' | 'Integration' | 'Subscription'>(kind: K) {
  return {
    ...byNamespace,
    publicId: ({ metadata }: Cached<K>) => [publicId(kind, metadata.namespace ?? '', metadata.name)],
  };
}

/** Returns the key of a user or a machine in the index of accounts. */
export function subjectKey(issuer: string, subject: string): string {
  return `${issuer}\0${subject}`;
}

const INDEXES: { readonly [K in KindName]: Indexes<K> } = {
  Account: {
    publicId: ({ metadata }) => [publicId('Account', '', metadata.name)],
    subject: ({ spec }) => spec.owners.flatMap(({ issuer, subject }) => (subject ? [subjectKey(issuer, subject)] : [])),
  },
  Workspace: { publicId: ({ metadata }) => [tenantId(metadata.name)], account: ({ spec }) => [spec.account] },
  CatalogStream: hashed('CatalogStream'),
  Package: {
    ...hashed('Package'),
    stream: ({ metadata, spec }) => [...new Set(spec.streams ?? [])].map(name => `${metadata.namespace}/${name}`),
  },
  Integration: {
    ...hashed('Integration'),
    workspace: ({ spec }) => (spec.workspace === undefined ? [] : [spec.workspace]),
    address: ({ metadata, spec }) =>
      spec.invitedEmail === undefined ? [] : [`${metadata.namespace}/${addressKey(spec.invitedEmail)}`],
    tokenHash: ({ status }) => (status?.invitation?.tokenHash === undefined ? [] : [status.invitation.tokenHash]),
  },
  Activation: {
    ...byNamespace,
    publicId: object => [activationId(spaceOf(object), object.spec.integration, object.spec.groupKey)],
    integration: object => [`${spaceOf(object)}/${object.spec.integration}`],
  },
  Block: {
    ...byNamespace,
    publicId: object => [
      blockId(spaceOf(object), object.spec.integration, object.spec.target.kind, object.spec.target.name),
    ],
    integration: object => [`${spaceOf(object)}/${object.spec.integration}`],
  },
  Subscription: {
    ...hashed('Subscription'),
    integration: ({ spec }) => [`${spec.producer}/${spec.integration}`],
  },
};

export function createCaches(client: KubeClient, clock: Clock, log: Logger): Caches {
  const kinds = Object.keys(RESOURCES) as KindName[];
  const keep = <K extends KindName>(object: Cached<K>) => slimObject(object, [PAUSED_ANNOTATION]) as Cached<K>;

  function reflect<K extends KindName>(kind: K): Reflector<Cached<K>> {
    const share = createPartSharing<Cached<K>>(kind === 'Activation' ? ['integration'] : []);
    return createReflector<Cached<K>, Cached<K>>({
      client,
      clock,
      log,
      resource: RESOURCES[kind],
      project: object => share(keep(object)),
      indexers: INDEXES[kind] as Indexes<K>,
      watchTimeoutSeconds: WATCH_TIMEOUT_SECONDS,
      inactivityMs: DEAD_AFTER_MS,
    });
  }
  const reflectors = Object.fromEntries(kinds.map(kind => [kind, reflect(kind)])) as unknown as {
    readonly [K in KindName]: Reflector<Cached<K>>;
  };
  const reflectorOf = <K extends KindName>(kind: K) => reflectors[kind] as unknown as Reflector<Cached<K>>;
  const lookups = createLookups({ client, clock, indexes: INDEXES, keep });

  function staleKinds(): string[] {
    const now = clock.nowMs();
    return kinds.filter(kind => {
      const heardMs = reflectors[kind].lastHeardMs();
      return !reflectors[kind].hasSynced() || heardMs === undefined || now - heardMs > MUST_HEAR_WITHIN_MS;
    });
  }

  return {
    get: (kind, { namespace, name }) => reflectorOf(kind).store.get(namespace ? `${namespace}/${name}` : name),
    list: (kind, namespace) =>
      namespace === undefined
        ? [...reflectorOf(kind).store.values()]
        : reflectorOf(kind).store.byIndex('namespace', namespace),
    by: (kind, index, value) => reflectorOf(kind).store.byIndex(index, value),
    find: async (kind, id, namespace) => {
      const known = reflectorOf(kind).store.byIndex('publicId', id);
      const found = known.find(object => namespace === undefined || object.metadata.namespace === namespace);
      return found ?? (await lookups.findLive(kind, id, namespace));
    },
    findLive: (kind, id) => lookups.findLive(kind, id),
    findBy: async (kind, index, value) =>
      reflectorOf(kind).store.byIndex(index, value)[0] ?? (await lookups.findLive(kind, value, undefined, index)),
    live: async (kind, name) => {
      try {
        return await client.get<Cached<typeof kind>>(RESOURCES[kind], name, {
          signal: AbortSignal.timeout(CALL_WITHIN_MS),
        });
      } catch (cause) {
        throw kubeRefusal(cause);
      }
    },
    listLive: createLiveLists({ client, keep }),
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
