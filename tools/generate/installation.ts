/** The names and the namespace of an installation. For the chart, these are Helm expressions. */
export interface Installation {
  /** The namespace of the pods, the service accounts, and the controller's Lease. */
  readonly namespace: string;
  /** The prefix of all names, without a hyphen. */
  readonly prefix: string;
  /** The value of the `app.kubernetes.io/instance` label, which an installation uses to find its own pods. */
  readonly instance: string;
  /** Returns the name of a role's service account. */
  readonly accountOf: (role: string) => string;
}

/** The installation described by config and the reference pages. */
export const DEFAULT_INSTALLATION: Installation = {
  namespace: 'sluice-system',
  prefix: 'sluice',
  instance: 'sluice',
  accountOf: role => `sluice-${role}`,
};
