import { headersWithSecret } from '../../api/endpoint.ts';
import { DEFAULT_INSTANCE } from '../../api/instance.ts';
import type { KindName, ObjectOf } from '../../api/kinds/kinds.ts';
import { INSTANCE_LABEL, PAUSED_ANNOTATION, WORKSPACE_LABEL } from '../../api/well-known.ts';
import { publicId, tenantId } from '../../core/ids/ids.ts';
import type { KubeClient } from '../../kube/client.ts';
import { createResponsibility } from '../../kube/instances/responsibility.ts';
import type { NamespacedViews } from '../../kube/namespaced-views.ts';
import { type AnyObject, type KubeObject, slimObject } from '../../kube/object.ts';
import { createReflector, type Reflector } from '../../kube/reflector.ts';
import { NAMESPACES, resourceOf } from '../../kube/resource.ts';
import { createPartSharing } from '../../kube/shared-parts.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';
import { createSecretCaches, namespaceOfHeaderSecret, type SecretObject } from './secret-caches.ts';

/** A cached object of the given kind. */
export type Cached<K extends KindName> = KubeObject<ObjectOf<K>['spec'], NonNullable<ObjectOf<K>['status']>>;

type Indexes<K extends KindName> = Readonly<Record<string, (object: Cached<K>) => readonly string[]>>;

const byNamespace = { namespace: (object: AnyObject) => [object.metadata.namespace ?? ''] };

/**
 * Returns the key of the pair for an Activation. This key can be parsed because integration names don't contain a
 * slash.
 */
export function pairKey(namespace: string, integration: string, groupKey: string): string {
  return `${namespace}/${integration}/${groupKey}`;
}

export function pairKeyOf({ metadata, spec }: Cached<'Activation'>): string {
  return pairKey(metadata.namespace ?? '', spec.integration, spec.groupKey);
}

/** Returns the entry in the index for the target of a Block. */
export function targetKey(namespace: string, kind: 'CatalogStream' | 'Package', name: string): string {
  return `${namespace}/${kind}/${name}`;
}

/** Cache indexes for each kind. */
export const INDEXES: { readonly [K in KindName]: Indexes<K> } = {
  Account: { publicId: ({ metadata }) => [publicId('Account', '', metadata.name)] },
  Workspace: {
    account: object => [object.spec.account],
    publicId: ({ metadata }) => [tenantId(metadata.name)],
  },
  CatalogStream: byNamespace,
  Package: {
    ...byNamespace,
    stream: ({ metadata, spec }) => [...new Set(spec.streams ?? [])].map(name => `${metadata.namespace}/${name}`),
  },
  Integration: {
    ...byNamespace,
    publicId: ({ metadata }) => [publicId('Integration', metadata.namespace ?? '', metadata.name)],
  },
  Block: {
    ...byNamespace,
    integration: ({ metadata, spec }) => [`${metadata.namespace}/${spec.integration}`],
    target: ({ metadata, spec }) => [targetKey(metadata.namespace ?? '', spec.target.kind, spec.target.name)],
  },
  Subscription: {
    ...byNamespace,
    producer: object => [object.spec.producer],
    integration: ({ spec }) => [`${spec.producer}/${spec.integration}`],
    publicId: ({ metadata }) => [publicId('Subscription', metadata.namespace ?? '', metadata.name)],
    // A Subscription using a header from a Secret is indexed by this Secret and by its producer.
    secret: ({ metadata, spec }) => [
      ...new Set(headersWithSecret(spec.endpoint?.headers).map(({ secret }) => `${metadata.namespace}/${secret.name}`)),
    ],
    secretFor: ({ spec }) => (headersWithSecret(spec.endpoint?.headers).length === 0 ? [] : [spec.producer]),
  },
  Activation: {
    ...byNamespace,
    integration: ({ metadata, spec }) => [`${metadata.namespace}/${spec.integration}`],
    pair: activation => [pairKeyOf(activation)],
  },
};

/** Fields of the spec which often have the same value for many objects of this kind. */
const SHARED_FIELDS: { readonly [K in KindName]?: readonly (keyof Cached<K>['spec'] & string)[] } = {
  Activation: ['integration'],
  Subscription: ['producer', 'integration', 'stream'],
};

/** The part of a namespace that we keep in the cache. */
interface CachedNamespace {
  /** The name of the Workspace that is allowed to adopt the namespace. Empty if it belongs to another installation. */
  readonly workspace: string;
  /** The installation that is responsible for a namespace without a Workspace. */
  readonly instance: string;
  readonly deleting: boolean;
}

/** Returns the part of a namespace that should be cached. @param instance the name of this installation */
export function projectNamespace({ metadata }: AnyObject, instance: string): CachedNamespace {
  const { [WORKSPACE_LABEL]: workspace = '', [INSTANCE_LABEL]: owner = DEFAULT_INSTANCE } = metadata.labels ?? {};
  return {
    workspace: owner === instance ? workspace : '',
    instance: owner,
    deleting: metadata.deletionTimestamp !== undefined,
  };
}

type Connection = { readonly client: KubeClient; readonly clock: Clock; readonly log: Logger };

/** Returns the function that creates the cache for a kind. */
function kindReflectors(connection: Connection) {
  return <K extends KindName>(kind: K): Reflector<Cached<K>> => {
    const share = createPartSharing<Cached<K>>(SHARED_FIELDS[kind] ?? []);
    return createReflector<Cached<K>, Cached<K>>({
      ...connection,
      resource: resourceOf(kind),
      project: object => share(slimObject(object, [PAUSED_ANNOTATION]) as Cached<K>),
      indexers: INDEXES[kind],
    });
  };
}

/**
 * Caches contains a reflector for each kind. Each reflector is limited to the objects that this installation is
 * responsible for. The same connection is used by all reflectors.
 */
export type Caches = ReturnType<typeof createCaches>['caches'];

/**
 * @param options.instance name of this installation. Defaults to the default one.
 * @param options.secretViews used instead of the Secrets of the whole cluster, if set
 */
export function createCaches(
  options: Connection & {
    readonly instance?: string;
    readonly secretViews?: NamespacedViews<SecretObject> | undefined;
  },
) {
  const { client, clock, log, instance = DEFAULT_INSTANCE, secretViews } = options;
  const connection = { client, clock, log };
  const reflect = kindReflectors(connection);
  const secrets = createSecretCaches(connection, secretViews);
  const workspaces = reflect('Workspace');
  const namespaces = createReflector<AnyObject, CachedNamespace>({
    ...connection,
    resource: NAMESPACES,
    labelSelector: WORKSPACE_LABEL,
    project: namespace => projectNamespace(namespace, instance),
  });
  const { assigned, namespaced, confirm } = createResponsibility({ instance, workspaces, namespaces, client, log });
  const within = <K extends KindName>(kind: K) =>
    namespaced(reflect(kind), ({ metadata }) => metadata.namespace as string);
  const ofSecret = (secret: { readonly namespace: string }) => secret.namespace;
  const caches = {
    Account: assigned(reflect('Account')),
    Workspace: assigned(workspaces),
    CatalogStream: within('CatalogStream'),
    Package: within('Package'),
    Integration: within('Integration'),
    Block: within('Block'),
    Subscription: within('Subscription'),
    Activation: within('Activation'),
    /** Namespaces carrying the workspace label. */
    namespaces,
    signingSecrets: namespaced(secrets.signingSecrets, ofSecret),
    invitationSecrets: namespaced(secrets.invitationSecrets, ofSecret),
    headerSecrets: namespaced(secrets.headerSecrets, namespaceOfHeaderSecret),
    ingressKeys: namespaced(secrets.ingressKeys, ofSecret),
  };
  return { caches, confirm };
}
