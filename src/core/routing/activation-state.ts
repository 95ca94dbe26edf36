/** The fields of an Activation that decide for its pair. */
export interface ActivationOfPair {
  readonly revoked: boolean;
  readonly deleting: boolean;
}

/**
 * Returns whether the pair (integration, group key) is open: at least one object opens it and none revokes it. Closing
 * always works; opening needs the consent of all.
 */
export function pairIsOpen(activations: readonly ActivationOfPair[]): boolean {
  return activations.some(each => !each.deleting) && activations.every(each => !each.revoked);
}
