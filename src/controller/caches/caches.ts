import { createHash } from 'node:crypto';
import { headersWithSecret } from '../../api/endpoint.ts';
import { GROUP, VERSION } from '../../api/group-version.ts';
import { KINDS, type KindName, type ObjectOf } from '../../api/kinds/kinds.ts';
import {
  INGRESS_KEY_FIELD,
  INGRESS_KEY_SECRET_TYPE,
  INVITATION_SECRET_FIELD,
  INVITATION_SECRET_TYPE,
  NEVER_SENT_SECRET_TYPES,
  PAUSED_ANNOTATION,
  SIGNING_SECRET_FIELD,
  SIGNING_SECRET_TYPE,
  WORKSPACE_LABEL,
} from '../../api/well-known.ts';
import { publicId, tenantId } from '../../core/ids/ids.ts';
import { faultOfIngressKey } from '../../core/ids/ingress-key.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type AnyObject, type KubeObject, keyOf, slimObject } from '../../kube/object.ts';
import { createReflector, type Reflector } from '../../kube/reflector.ts';
import { NAMESPACES, type Resource, SECRETS } from '../../kube/resource.ts';
import { createPartSharing } from '../../kube/shared-parts.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';

/** An object of the given kind in the caches. */
export type Cached<K extends KindName> = KubeObject<ObjectOf<K>['spec'], NonNullable<ObjectOf<K>['status']>>;

/**
 * The fields of an ingress key Secret that are kept in the cache. The key itself is not kept. Either `sha256` or
 * `unusable` is set.
 */
export interface IngressKeySecret {
  readonly namespace: string;
  readonly sha256?: string;
  /** The reason why the Secret cannot be used, and the metadata that is required for the Event. */
  readonly unusable?: {
    readonly message: string;
    readonly metadata: Pick<AnyObject['metadata'], 'name' | 'namespace' | 'uid' | 'resourceVersion'>;
  };
}

type SecretObject = AnyObject & {
  readonly metadata: { readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[] };
  readonly data?: Readonly<Record<string, string>>;
};

/** The fields of a mirrored signing secret that are kept in the cache. */
export interface SigningSecretMirror {
  readonly namespace: string;
  /** The value of the Secret, encoded in base64. */
  readonly data: string | undefined;
  /** The name of the Subscription that owns the Secret. */
  readonly owner: string | undefined;
}

/** The fields of an invitation Secret that are kept in the cache. The token is not kept. */
export interface InvitationSecret {
  readonly namespace: string;
  /** The hash of the token. Undefined if the Secret is empty. */
  readonly sha256: string | undefined;
  /** The name of the Integration that owns the Secret. */
  readonly owner: string | undefined;
}

/** A Secret that may be used as the value of a header. The data of the Secret is not included. */
export interface HeaderSecret {
  /** The key in the form `namespace/name`. */
  readonly key: string;
  readonly resourceVersion: string;
}

type Indexes<K extends KindName> = Readonly<Record<string, (object: Cached<K>) => readonly string[]>>;

export function resourceOf(kind: KindName): Resource {
  const { plural, scope } = KINDS[kind];
  return { group: GROUP, version: VERSION, kind, plural, namespaced: scope === 'Namespaced' };
}

const byNamespace = { namespace: (object: AnyObject) => [object.metadata.namespace ?? ''] };

/**
 * Returns the key for the pair of an Activation. The key can be parsed because the names of integrations do not contain
 * a slash.
 */
export function pairKey(namespace: string, integration: string, groupKey: string): string {
  return `${namespace}/${integration}/${groupKey}`;
}

export function pairKeyOf({ metadata, spec }: Cached<'Activation'>): string {
  return pairKey(metadata.namespace ?? '', spec.integration, spec.groupKey);
}

/** Returns the index entry for the target of a Block. */
export function targetKey(namespace: string, kind: 'CatalogStream' | 'Package', name: string): string {
  return `${namespace}/${kind}/${name}`;
}

/** The indexes of the cache of each kind. */
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
    // The Subscriptions with a header from a Secret are indexed by the Secret and by the producer.
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

/** The fields of a spec that often have the same value in many objects of the kind. */
const SHARED_FIELDS: { readonly [K in KindName]?: readonly (keyof Cached<K>['spec'] & string)[] } = {
  Activation: ['integration'],
  Subscription: ['producer', 'integration', 'stream'],
};

/**
 * Returns the SHA-256 hash of a value in a Secret, encoded in hexadecimal. @param value the value, encoded in base64
 */
function sha256Of(value: string | undefined): string | undefined {
  return value === undefined ? undefined : createHash('sha256').update(Buffer.from(value, 'base64')).digest('hex');
}

/**
 * Returns the fields of an ingress key Secret that are kept in the cache. This is either the hash or the reason why the
 * Secret cannot be used.
 */
export function projectIngressKey({ metadata, data = {} }: SecretObject): IngressKeySecret {
  const { name, namespace = '', uid, resourceVersion } = metadata;
  const value = data[INGRESS_KEY_FIELD];
  const fault = value === undefined ? 'missing' : faultOfIngressKey(Buffer.from(value, 'base64'));
  if (fault === undefined) return { namespace, sha256: sha256Of(value) as string };
  const fields = Object.keys(data).toSorted().slice(0, 5).join(', ');
  const message =
    value === undefined
      ? `This ingress key is not valid because the Secret does not have a field "${INGRESS_KEY_FIELD}"${fields === '' ? '' : ` (it has: ${fields})`}. Add the key to this field.`
      : `This ingress key is not valid: ${fault}.`;
  return { namespace, unusable: { message, metadata: { name, namespace, uid, resourceVersion } } };
}

/** The caches of the controller. There is one reflector for each kind and all reflectors use the same connection. */
export type Caches = ReturnType<typeof createCaches>;

export function createCaches(client: KubeClient, clock: Clock, log: Logger) {
  const connection = { client, clock, log };
  function reflect<K extends KindName>(kind: K): Reflector<Cached<K>> {
    const share = createPartSharing<Cached<K>>(SHARED_FIELDS[kind] ?? []);
    return createReflector<Cached<K>, Cached<K>>({
      ...connection,
      resource: resourceOf(kind),
      project: object => share(slimObject(object, [PAUSED_ANNOTATION]) as Cached<K>),
      indexers: INDEXES[kind],
    });
  }
  return {
    Account: reflect('Account'),
    Workspace: reflect('Workspace'),
    CatalogStream: reflect('CatalogStream'),
    Package: reflect('Package'),
    Integration: reflect('Integration'),
    Block: reflect('Block'),
    Subscription: reflect('Subscription'),
    Activation: reflect('Activation'),
    /** The namespaces that have the label of a workspace. */
    namespaces: createReflector<AnyObject, { readonly workspace: string; readonly deleting: boolean }>({
      ...connection,
      resource: NAMESPACES,
      labelSelector: WORKSPACE_LABEL,
      project: ({ metadata }) => ({
        workspace: metadata.labels?.[WORKSPACE_LABEL] ?? '',
        deleting: metadata.deletionTimestamp !== undefined,
      }),
    }),
    /** The mirrored signing secrets. They are cached so that they can be restored if they are changed or deleted. */
    signingSecrets: createReflector<SecretObject, SigningSecretMirror>({
      ...connection,
      resource: SECRETS,
      fieldSelector: `type=${SIGNING_SECRET_TYPE}`,
      project: ({ metadata, data }) => ({
        namespace: metadata.namespace ?? '',
        data: data?.[SIGNING_SECRET_FIELD],
        owner: metadata.ownerReferences?.find(({ kind }) => kind === 'Subscription')?.name,
      }),
    }),
    /** The Secrets with invitations. They are cached so that they can be restored or emptied. */
    invitationSecrets: createReflector<SecretObject, InvitationSecret>({
      ...connection,
      resource: SECRETS,
      fieldSelector: `type=${INVITATION_SECRET_TYPE}`,
      project: ({ metadata, data }) => ({
        namespace: metadata.namespace ?? '',
        sha256: sha256Of(data?.[INVITATION_SECRET_FIELD]),
        owner: metadata.ownerReferences?.find(({ kind }) => kind === 'Integration')?.name,
      }),
    }),
    /** The names and versions of Secrets that can be used in headers. The data of the Secrets is not cached. */
    headerSecrets: createReflector<AnyObject, HeaderSecret>({
      ...connection,
      resource: SECRETS,
      metadataOnly: true,
      fieldSelector: NEVER_SENT_SECRET_TYPES.map(type => `type!=${type}`).join(','),
      project: ({ metadata }) => ({ key: keyOf(metadata), resourceVersion: metadata.resourceVersion }),
    }),
    ingressKeys: createReflector<SecretObject, IngressKeySecret>({
      ...connection,
      resource: SECRETS,
      fieldSelector: `type=${INGRESS_KEY_SECRET_TYPE}`,
      project: projectIngressKey,
      indexers: { namespace: secret => [secret.namespace] },
    }),
  };
}
