/** The fields of an Activation that determine its state. */
export interface ActivationOfPair {
  readonly revoked: boolean;
  readonly deleting: boolean;
}

/**
 * Returns true if the group key is open for this integration. At least one object must open it, and no object may
 * revoke it.
 */
export function pairIsOpen(activations: readonly ActivationOfPair[]): boolean {
  return activations.some(each => !each.deleting) && activations.every(each => !each.revoked);
}
