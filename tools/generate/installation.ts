/** Names and place of an installation. For the chart, the texts are expressions of Helm. */
export interface Installation {
  /** Namespace of the pods, the service accounts and the controller's Lease. */
  readonly namespace: string;
  /** Start of all names, without a hyphen. */
  readonly prefix: string;
  /** Value of the label `app.kubernetes.io/instance`, by which an installation finds its own pods. */
  readonly instance: string;
  /** Returns the name of a role's service account. */
  readonly accountOf: (role: string) => string;
}

/** The installation that config and the reference pages describe. */
export const DEFAULT_INSTALLATION: Installation = {
  namespace: 'sluice-system',
  prefix: 'sluice',
  instance: 'sluice',
  accountOf: role => `sluice-${role}`,
};
