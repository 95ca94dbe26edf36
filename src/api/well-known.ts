/** Labels, annotations, finalizers, Secret types, and field managers visible to Kubernetes users. */

/**
 * Namespace label that allows the Workspace of this name to adopt it. Also set by the controller on any namespace it
 * creates.
 */
export const WORKSPACE_LABEL = 'sluice.dev/workspace';

/**
 * Namespace label with the installation (`spec.instance`) that is responsible for the namespace. The label remains when
 * the Workspace is deleted, so that the same installation can clean up. The default installation does not set this
 * label.
 */
export const INSTANCE_LABEL = 'sluice.dev/instance';

/**
 * Annotation on the controller Lease with the random id of the Redis that the leader writes to. The id exists
 * for as long as the data in this Redis.
 */
export const STORE_ANNOTATION = 'sluice.dev/redis';

/**
 * Annotation used to pause a Workspace. While this is set to `"true"`, the workspace is not reconciled, and events use
 * the existing routes. Any changes in the meantime are applied after the annotation has been removed. However,
 * deletions will only wait for up to one minute, unless a stream has undelivered events. If Redis loses control state
 * during the pause, it won't be rebuilt, and ingress responds with 503. If the producer's workspace is paused, all
 * subscriptions to its streams are paused as well. Has no effect on a Workspace that is being deleted.
 */
export const PAUSED_ANNOTATION = 'sluice.dev/paused';

/** Annotation on CustomResourceDefinitions with the hash of their spec, which the controller compares to its own. */
export const SCHEMA_ANNOTATION = 'sluice.dev/schema';

/** The finalizer for kinds that need cleanup or protection (all except Activation, Block, and Integration). */
export const FINALIZER = 'sluice.dev/finalizer';

/** The name of the ResourceQuota created by the controller in workspace namespaces. */
export const QUOTA_NAME = 'sluice';

/** The type of a Secret containing an ingress key for the workspace of its namespace. */
export const INGRESS_KEY_SECRET_TYPE = 'sluice.dev/ingress-key';

/** The field of an ingress key Secret holding the key. */
export const INGRESS_KEY_FIELD = 'key';

/**
 * The type of the `<subscription>-signing` Secret. The controller creates this Secret for partners who are using
 * kubectl.
 */
export const SIGNING_SECRET_TYPE = 'sluice.dev/signing';

/** The field of a signing Secret holding the latest `whsec_` secret. */
export const SIGNING_SECRET_FIELD = 'secret';

/** The type of the `<integration>-invitation` Secret. The controller creates this Secret if there is no mail server. */
export const INVITATION_SECRET_TYPE = 'sluice.dev/invitation';

/** The field of an invitation Secret holding the token. */
export const INVITATION_SECRET_FIELD = 'token';

/**
 * Secret types that can't be used for endpoint headers. If such a Secret were allowed, anyone who can write a
 * Subscription could send credentials of the cluster or of Sluice itself to an endpoint.
 */
export const NEVER_SENT_SECRET_TYPES: readonly string[] = [
  INGRESS_KEY_SECRET_TYPE,
  SIGNING_SECRET_TYPE,
  INVITATION_SECRET_TYPE,
  'kubernetes.io/service-account-token',
  'bootstrap.kubernetes.io/token',
  'helm.sh/release.v1',
];

/**
 * The field managers used with server-side apply. The facade uses a different manager for each concern. If all concerns
 * used the same manager, archiving a package would remove its display name.
 */
export const FIELD_MANAGER = {
  controller: 'sluice-controller',
  facade: 'sluice-facade',
  facadeStreams: 'sluice-facade/streams',
  facadeArchive: 'sluice-facade/archive',
  facadeAcceptance: 'sluice-facade/acceptance',
  facadeDecline: 'sluice-facade/decline',
  facadeRevocation: 'sluice-facade/revocation',
  facadeProducer: 'sluice-facade/producer',
  facadeKeys: 'sluice-facade/keys',
} as const;

export type FieldManager = (typeof FIELD_MANAGER)[keyof typeof FIELD_MANAGER];

/** Returns the name of the Secret containing a subscription's signing secret. */
export function signingSecretName(subscription: string): string {
  return `${subscription}-signing`;
}

/** Returns the name of the Secret for an integration's invitation token, which is used if there is no mail server. */
export function invitationSecretName(integration: string): string {
  return `${integration}-invitation`;
}
