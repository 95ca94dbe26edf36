import type { Claim, ClaimedEvent } from '../../part/claims/message.ts';

/** A claim of this process, from when it was read until its attempt has ended. */
export interface HeldClaim {
  readonly claim: Claim;
  readonly event: ClaimedEvent;
  /** The earliest time at which it could have been made or confirmed, using our clock (see `createElapsedClock`). */
  atMs: number;
  /** Whether there are more events behind it in its lane. */
  behind: boolean;
  /** A later claim for the same lane. This claim was taken over while there is still an attempt in progress. */
  next: HeldClaim | undefined;
}
