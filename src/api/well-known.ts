/**
 * Defines the labels, annotations, finalizers, Secret types and field managers that are visible to Kubernetes users.
 */

/**
 * The label on a namespace that allows the Workspace with this name to adopt it. The controller sets the label on
 * namespaces that it creates.
 */
export const WORKSPACE_LABEL = 'sluice.dev/workspace';

/**
 * The annotation that pauses a Workspace. If the value is `"true"`, the controller does not reconcile the workspace,
 * and events use the applied routes. Changes are applied after the annotation is removed. Deletions wait for at most
 * one minute. If Redis loses control state during the pause, the controller does not rebuild it, and ingress responds
 * with 503. A subscription is paused together with the workspace of its producer. The annotation has no effect on a
 * Workspace that is being deleted.
 */
export const PAUSED_ANNOTATION = 'sluice.dev/paused';

/**
 * The annotation on CustomResourceDefinitions that contains the hash of their spec. The controller compares the value
 * with its own hash.
 */
export const SCHEMA_ANNOTATION = 'sluice.dev/schema';

/** The finalizer for kinds that require cleanup, which are CatalogStream, Package, Subscription and Workspace. */
export const FINALIZER = 'sluice.dev/finalizer';

/** The type of a Secret that contains an ingress key of the workspace in its namespace. */
export const INGRESS_KEY_SECRET_TYPE = 'sluice.dev/ingress-key';

/** The field of an ingress key Secret that contains the key. */
export const INGRESS_KEY_FIELD = 'key';

/** The type of the Secret `<subscription>-signing`, which the controller writes for partners that use kubectl. */
export const SIGNING_SECRET_TYPE = 'sluice.dev/signing';

/** The field of a signing Secret that contains the latest `whsec_` secret. */
export const SIGNING_SECRET_FIELD = 'secret';

/** The type of the Secret `<integration>-invitation`, which the controller writes if no mail server is configured. */
export const INVITATION_SECRET_TYPE = 'sluice.dev/invitation';

/** The field of an invitation Secret that contains the token. */
export const INVITATION_SECRET_FIELD = 'token';

/**
 * The types of Secrets that endpoint headers cannot read. Otherwise, a user who can write a Subscription could send
 * credentials of the cluster or of Sluice to an endpoint.
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
 * The field managers for server-side apply. The facade uses a separate manager for each concern. With a single manager,
 * archiving a package would remove its display name.
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

/** Returns the name of the Secret that contains the signing secret of a subscription. */
export function signingSecretName(subscription: string): string {
  return `${subscription}-signing`;
}

/**
 * Returns the name of the Secret that contains the invitation token of an integration if no mail server is configured.
 */
export function invitationSecretName(integration: string): string {
  return `${integration}-invitation`;
}
