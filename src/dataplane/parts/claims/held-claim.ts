import type { EventMeta } from '../../../core/events/event-meta.ts';
import type { Claim, ClaimedEvent } from '../../../part/claims/message.ts';
import type { EventHeaders } from '../../dispatcher/headers.ts';

/** The data of an event that is shared by all of its subscriptions. */
export interface KnownEvent {
  readonly inboxRef: string;
  readonly isTest: boolean;
  readonly acceptedMs: number;
  /** For test events and expired events, this is undefined. */
  readonly sent: { readonly meta: EventMeta; readonly headers: EventHeaders } | undefined;
}

/** An event with claims of this process. */
export interface HeldEvent extends ClaimedEvent {
  /** Set by the first attempt. A WeakMap would take 1 µs more, and has to be collected. */
  known?: KnownEvent;
}

/** A claim of this process, from when it was read until its attempt has ended. */
export interface HeldClaim {
  readonly claim: Claim;
  readonly event: HeldEvent;
  /** The earliest time at which it could have been made or confirmed, using our clock (see `createElapsedClock`). */
  atMs: number;
  /** True if there are more events behind the event in its lane. */
  behind: boolean;
  /** A later claim for the same lane. This claim was taken over while there is still an attempt in progress. */
  next: HeldClaim | undefined;
}
