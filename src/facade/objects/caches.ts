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
import { CALL_WITHIN_MS, refusalOf } from './kube-failures.ts';
import { createLiveLists, type ListLive } from './live-lists.ts';
import { createLookups } from './lookups.ts';

/** Everything that the facade watches, and how it finds in it. */
export interface World {
  /** An object by name, as the cache has it. */
  readonly get: <K extends KindName>(kind: K, name: ObjectName) => Cached<K> | undefined;
  /** Objects of a namespace; of all, for kinds of the cluster. They lag by the watch's latency. */
  readonly list: <K extends KindName>(kind: K, namespace?: string) => Cached<K>[];
  /**
   * The object with a public id: from the cache, and when it is not there, by one list (so that what another replica has
   * just made is found). `namespace` confines it.
   */
  readonly find: <K extends KindName>(kind: K, id: string, namespace?: string) => Promise<Cached<K> | undefined>;
  /** As `find` does where the cache has none, whether it has or not: what it has must not be told by the time it takes. */
  readonly findLive: <K extends KindName>(kind: K, id: string) => Promise<Cached<K> | undefined>;
  /** As `find`, by an index each of whose values belongs to one object: `tokenHash`. */
  readonly findBy: <K extends KindName>(kind: K, index: string, value: string) => Promise<Cached<K> | undefined>;
  /** The object as the API server has it now, with its managed fields. @throws Refusal 503 */
  readonly live: <K extends KindName>(kind: K, name: ObjectName) => Promise<Cached<K> | undefined>;
  /** For what the caches may not decide alone; dearer than `live`. */
  readonly listLive: ListLive;
  /** Objects that say `value` in an index, such as `integration` (`namespace/name`). They lag by the watch's latency. */
  readonly by: <K extends KindName>(kind: K, index: string, value: string) => Cached<K>[];
  readonly reflector: <K extends KindName>(kind: K) => Reflector<Cached<K>>;
  /** @throws Refusal 503 while any cache is not filled or has not been heard of for 30 s */
  readonly assertCurrent: () => void;
  /** Why `assertCurrent` would throw. */
  readonly staleKinds: () => readonly string[];
  /** Watches until the signal aborts. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** A watch is opened for so long: its end proves that the API server is there, when nothing else does. */
const WATCH_TIMEOUT_SECONDS = 14;
/** Longer than any watch is asked for: a connection that is silent for so long is dead. */
const DEAD_AFTER_MS = 25_000;
/** A kind that was not heard of for so long may be out of date: nothing is answered from it. */
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

/** One person or machine, as the index of accounts names it. */
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

export function createWorld(client: KubeClient, clock: Clock, log: Logger): World {
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
        throw refusalOf(cause);
      }
    },
    listLive: createLiveLists({ client, keep }),
    reflector: reflectorOf,
    staleKinds,
    assertCurrent: () => {
      if (staleKinds().length > 0) {
        throw new Refusal('unavailable', 'What is known of the custom resources may be out of date. Try again.');
      }
    },
    run: async signal => {
      await Promise.all(kinds.map(kind => reflectors[kind].run(signal)));
    },
  };
}
