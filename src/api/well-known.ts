/** Labels, annotations, finalizers, Secret types, and field managers visible to Kubernetes users. */

/**
 * Namespace label that allows the Workspace of this name to adopt it. Also set by the controller on any namespace it
 * creates.
 */
export const WORKSPACE_LABEL = 'sluice.dev/workspace';

/**
 * Namespace label with the installation (`spec.instance`) that is responsible for the namespace. It remains when the
 * Workspace is deleted, so that the same installation can clean up. Not set by the default installation.
 */
export const INSTANCE_LABEL = 'sluice.dev/instance';

/**
 * Annotation used to pause a Workspace. While it is set to `"true"`, the workspace will not be reconciled, and events
 * use the routes that have been applied. Changes made in the meantime will be applied once the annotation has been
 * removed, but deletions only wait for up to one minute. If Redis loses control state during the pause, it won't be
 * rebuilt, and ingress responds with 503. Subscriptions are paused along with their producer's workspace. Has no effect
 * on a Workspace that is being deleted.
 */
export const PAUSED_ANNOTATION = 'sluice.dev/paused';

/** Annotation on CustomResourceDefinitions with the hash of their spec, which the controller compares to its own. */
export const SCHEMA_ANNOTATION = 'sluice.dev/schema';

/** Finalizer for the kinds that need cleanup or protection: Account, CatalogStream, Package, Subscription, and Workspace. */
export const FINALIZER = 'sluice.dev/finalizer';

/** Name of the ResourceQuota that the controller writes into the namespaces of workspaces. */
export const QUOTA_NAME = 'sluice';

/** Type of a Secret with an ingress key for the workspace of its namespace. */
export const INGRESS_KEY_SECRET_TYPE = 'sluice.dev/ingress-key';

/** Field of an ingress key Secret holding the key. */
export const INGRESS_KEY_FIELD = 'key';

/** Type of the Secret `<subscription>-signing`, written by the controller for partners who use kubectl. */
export const SIGNING_SECRET_TYPE = 'sluice.dev/signing';

/** Field of a signing Secret holding the latest `whsec_` secret. */
export const SIGNING_SECRET_FIELD = 'secret';

/** Type of the Secret `<integration>-invitation`, written by the controller when there is no mail server. */
export const INVITATION_SECRET_TYPE = 'sluice.dev/invitation';

/** Field of an invitation Secret holding the token. */
export const INVITATION_SECRET_FIELD = 'token';

/**
 * Secret types that endpoint headers can't read. Otherwise, anyone able to write a Subscription could have credentials
 * of the cluster, or of Sluice itself, sent to an endpoint.
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
 * Field managers used with server-side apply. The facade needs one per concern: if there was just one, archiving a
 * package would remove its display name.
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

/** Returns the name of the Secret with a subscription's signing secret. */
export function signingSecretName(subscription: string): string {
  return `${subscription}-signing`;
}

/** Returns the name of the Secret that holds an integration's invitation token when there is no mail server. */
export function invitationSecretName(integration: string): string {
  return `${integration}-invitation`;
}
