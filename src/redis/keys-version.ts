import { randomUUID } from 'node:crypto';

/** The field in the installation's state that contains the version of the ingress keys of all workspaces. */
const FIELD = 'keys';

/** A version of the ingress keys of all workspaces. Without a Cluster, it changes in the same step as the keys. */
export interface KeysVersion {
  readonly version: string;
  /** When it was requested, in milliseconds of the monotonic clock. */
  readonly requestedMs: number;
}

/** Returns the field with a new version, for the controller that has claimed this epoch. */
export function newKeysVersion(epoch: number): [field: string, value: string] {
  return [FIELD, `${epoch} ${randomUUID()}`];
}

/**
 * Returns the version in the installation's state. Undefined unless it was written by the last controller that has
 * claimed an epoch, because one with an older version of Sluice does not write it.
 */
export function keysVersionOf(state: Readonly<Record<string, string>>, requestedMs: number): KeysVersion | undefined {
  const { epoch, [FIELD]: version } = state;
  if (epoch === undefined || version?.split(' ')[0] !== epoch) return undefined;
  return { version, requestedMs };
}
