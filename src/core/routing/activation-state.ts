/** One Activation as far as its pair is concerned. */
export interface ActivationOfPair {
  readonly revoked: boolean;
  readonly deleting: boolean;
}

/**
 * Is the pair (integration, group key) open? At least one object says so and none says revoked: closing always works,
 * opening needs every closer to agree.
 */
export function pairIsOpen(activations: readonly ActivationOfPair[]): boolean {
  return activations.some(each => !each.deleting) && activations.every(each => !each.revoked);
}
