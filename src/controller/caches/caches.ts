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

/** A cached object of the given kind. */
export type Cached<K extends KindName> = KubeObject<ObjectOf<K>['spec'], NonNullable<ObjectOf<K>['status']>>;

/**
 * The part of an ingress key Secret that is kept in the cache, which never includes the key itself. Either `sha256` or
 * `unusable` will be set.
 */
export interface IngressKeySecret {
  readonly namespace: string;
  readonly sha256?: string;
  /** Why the Secret can't be used, along with the metadata needed for the Event. */
  readonly unusable?: {
    readonly message: string;
    readonly metadata: Pick<AnyObject['metadata'], 'name' | 'namespace' | 'uid' | 'resourceVersion'>;
  };
}

type SecretObject = AnyObject & {
  readonly metadata: { readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[] };
  readonly data?: Readonly<Record<string, string>>;
};

/** The part of a mirrored signing secret that is kept in the cache. */
export interface SigningSecretMirror {
  readonly namespace: string;
  /** Base64-encoded value of the Secret. */
  readonly data: string | undefined;
  /** Name of the owning Subscription. */
  readonly owner: string | undefined;
}

/** The part of an invitation Secret that is kept in the cache, excluding the token. */
export interface InvitationSecret {
  readonly namespace: string;
  /** Hash of the token, or undefined if the Secret is empty. */
  readonly sha256: string | undefined;
  /** Name of the owning Integration. */
  readonly owner: string | undefined;
}

/** A Secret that may provide a header value. Does not include the Secret's data. */
export interface HeaderSecret {
  /** Key formatted as `namespace/name`. */
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
 * Returns the pair key for an Activation. Since integration names can't contain a slash, the key can be parsed again.
 */
export function pairKey(namespace: string, integration: string, groupKey: string): string {
  return `${namespace}/${integration}/${groupKey}`;
}

export function pairKeyOf({ metadata, spec }: Cached<'Activation'>): string {
  return pairKey(metadata.namespace ?? '', spec.integration, spec.groupKey);
}

/** Returns the index entry for a Block's target. */
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
    // Subscriptions with a header from a Secret are indexed both by Secret and by producer.
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

/** Spec fields which often have the same value across many objects of the kind. */
const SHARED_FIELDS: { readonly [K in KindName]?: readonly (keyof Cached<K>['spec'] & string)[] } = {
  Activation: ['integration'],
  Subscription: ['producer', 'integration', 'stream'],
};

/**
 * Returns the hex-encoded SHA-256 hash of a Secret value.
 * @param value base64-encoded value
 */
function sha256Of(value: string | undefined): string | undefined {
  return value === undefined ? undefined : createHash('sha256').update(Buffer.from(value, 'base64')).digest('hex');
}

/**
 * Returns the part of an ingress key Secret to cache, which is either the hash or the reason why the Secret can't be
 * used.
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

/** Caches contains one reflector per kind. All reflectors share the same connection. */
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
    /** Namespaces carrying the workspace label. */
    namespaces: createReflector<AnyObject, { readonly workspace: string; readonly deleting: boolean }>({
      ...connection,
      resource: NAMESPACES,
      labelSelector: WORKSPACE_LABEL,
      project: ({ metadata }) => ({
        workspace: metadata.labels?.[WORKSPACE_LABEL] ?? '',
        deleting: metadata.deletionTimestamp !== undefined,
      }),
    }),
    /** Mirrored signing secrets, cached so we can restore them if they are changed or deleted. */
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
    /** Secrets holding invitations, cached so that they can be restored or emptied. */
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
    /** Names and versions of Secrets that can be used in headers. Their data is never cached. */
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
