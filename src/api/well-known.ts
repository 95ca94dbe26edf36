/**
 * Names that Kubernetes users see outside our own fields: labels, annotations, finalizer, Secret types, field
 * managers. Each is defined only here.
 */

/** Label on a namespace: the Workspace of this name may adopt it. The controller sets it on namespaces it creates. */
export const WORKSPACE_LABEL = 'sluice.dev/workspace';

/**
 * Annotation on a Workspace. While it is `"true"`, nothing of the workspace is reconciled, and events flow by the
 * applied routes. Changes are applied when it is removed; deletions wait at most a minute. If Redis loses control state
 * meanwhile, it is not rebuilt before: nothing is routed then, and ingress answers 503. A subscription follows its
 * producer's workspace. The annotation has no effect on a Workspace that is being deleted.
 */
export const PAUSED_ANNOTATION = 'sluice.dev/paused';

/** Annotation on our CustomResourceDefinitions: the hash of their spec. The controller compares it to its own. */
export const SCHEMA_ANNOTATION = 'sluice.dev/schema';

/** Finalizer on the kinds that need cleanup: CatalogStream, Package, Subscription, Workspace. */
export const FINALIZER = 'sluice.dev/finalizer';

/** Type of a Secret that holds an ingress key of its namespace's workspace. */
export const INGRESS_KEY_SECRET_TYPE = 'sluice.dev/ingress-key';

/** The field of an ingress-key Secret that holds the key. */
export const INGRESS_KEY_FIELD = 'key';

/** Type of the Secret `<subscription>-signing`. The controller writes it for partners who use kubectl. */
export const SIGNING_SECRET_TYPE = 'sluice.dev/signing';

/** The field of a signing Secret that holds the newest `whsec_` secret. */
export const SIGNING_SECRET_FIELD = 'secret';

/** Type of the Secret `<integration>-invitation`. The controller writes it if no mail server is configured. */
export const INVITATION_SECRET_TYPE = 'sluice.dev/invitation';

/** The field of an invitation Secret that holds the token. */
export const INVITATION_SECRET_FIELD = 'token';

/**
 * Types of Secrets that endpoint headers must not read. Otherwise anyone who can write a Subscription could send away
 * credentials of the cluster or of Sluice.
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
 * Field managers of server-side apply. The facade has one for each concern: with a single one, archiving a package
 * would remove its display name.
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

/** Returns the name of the Secret that mirrors a subscription's signing secret. */
export function signingSecretName(subscription: string): string {
  return `${subscription}-signing`;
}

/** Returns the name of the Secret that holds an integration's invitation token if no mail server is configured. */
export function invitationSecretName(integration: string): string {
  return `${integration}-invitation`;
}
