/** The fields of an Activation that determine its state. */
export interface ActivationOfPair {
  readonly revoked: boolean;
  readonly deleting: boolean;
}

/**
 * Returns whether the group key is open for the integration. At least one object must open it, and no object must
 * revoke it.
 */
export function pairIsOpen(activations: readonly ActivationOfPair[]): boolean {
  return activations.some(each => !each.deleting) && activations.every(each => !each.revoked);
}
