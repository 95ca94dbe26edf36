/**
 * Names that Kubernetes users meet outside our own fields: labels, annotations, finalizer, Secret types, field
 * managers. Each is written here once and nowhere else.
 */

/** Label on a namespace: the Workspace of this name may adopt it. The controller sets it on those that it creates. */
export const WORKSPACE_LABEL = 'sluice.dev/workspace';

/**
 * Annotation on a Workspace, `"true"`: nothing of it is reconciled; data flows on as the routes stand. Changes come into
 * force when it is taken away; deletions wait for that a minute at most. Control state that Redis loses meanwhile is not
 * rebuilt before: nothing is routed then, and ingress answers 503. A subscription follows its producer's workspace. On a
 * Workspace that is being deleted it says nothing.
 */
export const PAUSED_ANNOTATION = 'sluice.dev/paused';

/** Annotation on our CustomResourceDefinitions: the hash of their spec. The controller compares it with its own. */
export const SCHEMA_ANNOTATION = 'sluice.dev/schema';

/** Finalizer on the kinds that leave something in Redis: CatalogStream, Package, Subscription, Workspace. */
export const FINALIZER = 'sluice.dev/finalizer';

/** Type of a Secret that holds an ingress key of its namespace's workspace. */
export const INGRESS_KEY_SECRET_TYPE = 'sluice.dev/ingress-key';

/** The field of an ingress-key Secret that holds the key. */
export const INGRESS_KEY_FIELD = 'key';

/** Type of the Secret `<subscription>-signing`, written by the controller for partners with kubectl. */
export const SIGNING_SECRET_TYPE = 'sluice.dev/signing';

/** The field of a signing Secret that holds the newest `whsec_` secret. */
export const SIGNING_SECRET_FIELD = 'secret';

/** Type of the Secret `<integration>-invitation`, written when there is no mail server. */
export const INVITATION_SECRET_TYPE = 'sluice.dev/invitation';

/** The field of an invitation Secret that holds the token. */
export const INVITATION_SECRET_FIELD = 'token';

/**
 * Types of Secrets that no header of an endpoint may take its value from: who may write a Subscription could send away
 * credentials of the cluster, or of Sluice itself.
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
 * Field managers of server-side apply. The facade has one for each concern: with one for all, archiving a package
 * would take its display name away.
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

/** Name of the Secret that mirrors a subscription's signing secret. */
export function signingSecretName(subscription: string): string {
  return `${subscription}-signing`;
}

/** Name of the Secret that holds an integration's invitation token when there is no mail server. */
export function invitationSecretName(integration: string): string {
  return `${integration}-invitation`;
}
