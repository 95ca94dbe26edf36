import type { Claim, ClaimedEvent } from '../../part/claims/message.ts';

/** A claim of this process, from when it was read until its attempt ended. */
export interface HeldClaim {
  readonly claim: Claim;
  readonly event: ClaimedEvent;
  /** When it was made, at the earliest, by our monotonic clock. */
  atMs: number;
  /** More waits behind it in its lane. */
  behind: boolean;
  /** A later claim of the same lane. This one was taken over while its attempt is still in progress. */
  next: HeldClaim | undefined;
}
