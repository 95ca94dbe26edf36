import { createHash } from 'node:crypto';
import {
  INGRESS_KEY_FIELD,
  INGRESS_KEY_SECRET_TYPE,
  INVITATION_SECRET_FIELD,
  INVITATION_SECRET_TYPE,
  NEVER_SENT_SECRET_TYPES,
  SIGNING_SECRET_FIELD,
  SIGNING_SECRET_TYPE,
} from '../../api/well-known.ts';
import { faultOfIngressKey } from '../../core/ids/ingress-key.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { NamespacedViews } from '../../kube/namespaced-views.ts';
import { type AnyObject, keyOf } from '../../kube/object.ts';
import { createReflector, type Reflector } from '../../kube/reflector.ts';
import { SECRETS } from '../../kube/resource.ts';
import type { Indexers } from '../../kube/store.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';

/**
 * The part of a Secret with an ingress key that we keep in the cache. This part never includes the key itself. Either
 * `sha256` or `unusable` will be set.
 */
export interface IngressKeySecret {
  readonly namespace: string;
  readonly sha256?: string;
  /** The reason why this Secret can't be used, and the metadata required for the Event. */
  readonly unusable?: {
    readonly message: string;
    readonly metadata: Pick<AnyObject['metadata'], 'name' | 'namespace' | 'uid' | 'resourceVersion'>;
  };
}

export type SecretObject = AnyObject & {
  readonly metadata: { readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[] };
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
};

/** The cached part of a mirrored signing secret. */
export interface SigningSecretMirror {
  readonly namespace: string;
  /** Base64-encoded value of the Secret. */
  readonly data: string | undefined;
  /** The name of the owning Subscription. */
  readonly owner: string | undefined;
}

/** The cached part of an invitation Secret, excluding the token. */
export interface InvitationSecret {
  readonly namespace: string;
  /** The token hash. Undefined if the Secret is empty. */
  readonly sha256: string | undefined;
  /** The name of the owning Integration. */
  readonly owner: string | undefined;
}

/** A Secret that could be used for the header value. Does not include the Secret's data. */
export interface HeaderSecret {
  /** The key, in the format `namespace/name`. */
  readonly key: string;
  readonly resourceVersion: string;
}

/**
 * Returns the SHA-256 hash of a value in a Secret, encoded in hex.
 * @param value base64-encoded value
 */
function sha256Of(value: string | undefined): string | undefined {
  return value === undefined ? undefined : createHash('sha256').update(Buffer.from(value, 'base64')).digest('hex');
}

/**
 * Returns the part of a Secret with an ingress key that should be cached: either the hash, or the reason why the Secret
 * can't be used.
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

const OURS = [INGRESS_KEY_SECRET_TYPE, SIGNING_SECRET_TYPE, INVITATION_SECRET_TYPE];

/**
 * Selects all Secrets required by at least one of the caches. The other types can be large, such as releases of Helm.
 */
export const NEEDED_SECRETS = NEVER_SENT_SECRET_TYPES.filter(type => !OURS.includes(type))
  .map(type => `type!=${type}`)
  .join(',');

export function namespaceOfHeaderSecret({ key }: HeaderSecret): string {
  return key.slice(0, key.indexOf('/'));
}

/**
 * Creates the Secret caches. Without `views`, they list the Secrets of the whole cluster, and each cache uses a
 * separate watch.
 */
export function createSecretCaches(
  connection: { readonly client: KubeClient; readonly clock: Clock; readonly log: Logger },
  views: NamespacedViews<SecretObject> | undefined,
) {
  function ofType<P extends { readonly namespace: string }>(
    type: string,
    project: (secret: SecretObject) => P,
  ): Reflector<P> {
    const indexers: Indexers<P> = { namespace: secret => [secret.namespace] };
    return views === undefined
      ? createReflector<SecretObject, P>({
          ...connection,
          resource: SECRETS,
          fieldSelector: `type=${type}`,
          project,
          indexers,
        })
      : views.view(secret => (secret.type === type ? project(secret) : undefined), indexers);
  }

  const projectHeader = ({ metadata }: AnyObject): HeaderSecret => ({
    key: keyOf(metadata),
    resourceVersion: metadata.resourceVersion,
  });
  const headerIndexers: Indexers<HeaderSecret> = { namespace: secret => [namespaceOfHeaderSecret(secret)] };

  return {
    /** Mirrored signing secrets, cached so we can restore them if they are changed or deleted. */
    signingSecrets: ofType<SigningSecretMirror>(SIGNING_SECRET_TYPE, ({ metadata, data }) => ({
      namespace: metadata.namespace ?? '',
      data: data?.[SIGNING_SECRET_FIELD],
      owner: metadata.ownerReferences?.find(({ kind }) => kind === 'Subscription')?.name,
    })),
    /** The Secrets that contain invitations. We cache them so that it is possible to restore or empty them. */
    invitationSecrets: ofType<InvitationSecret>(INVITATION_SECRET_TYPE, ({ metadata, data }) => ({
      namespace: metadata.namespace ?? '',
      sha256: sha256Of(data?.[INVITATION_SECRET_FIELD]),
      owner: metadata.ownerReferences?.find(({ kind }) => kind === 'Integration')?.name,
    })),
    /** The names and versions of all Secrets which can be used for a header. We never cache their data. */
    headerSecrets:
      views === undefined
        ? createReflector<AnyObject, HeaderSecret>({
            ...connection,
            resource: SECRETS,
            metadataOnly: true,
            fieldSelector: NEVER_SENT_SECRET_TYPES.map(type => `type!=${type}`).join(','),
            project: projectHeader,
            indexers: headerIndexers,
          })
        : views.view(
            secret => (NEVER_SENT_SECRET_TYPES.includes(secret.type ?? '') ? undefined : projectHeader(secret)),
            headerIndexers,
          ),
    ingressKeys: ofType<IngressKeySecret>(INGRESS_KEY_SECRET_TYPE, projectIngressKey),
  };
}
