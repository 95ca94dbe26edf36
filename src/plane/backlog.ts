import type { InboxRef } from './inbox-ref.ts';

/** The position up to which an inbox is settled. Initially `0-0`, then the value returned by the last call. */
export interface InboxLook extends InboxRef {
  readonly settledTo: string;
}

export interface OldestOpen {
  /** Acceptance time of the oldest open event in ms. If there are no open events, this is undefined. */
  readonly ms: number | undefined;
  /**
   * This is false if there are no open events that are older than `ms`. Another call that starts at `settledTo` might
   * find more of them.
   */
  readonly exact: boolean;
  readonly settledTo: string;
}

/** Reads what is waiting for a subscription. This does not write anything, and the cost of each call is limited. */
export interface BacklogStore {
  /**
   * The time at which the oldest event that has not been routed to a subscription was accepted, in milliseconds. If a
   * subscription is not behind, this is undefined.
   *
   * @param gen generation of the queue
   */
  readonly readUnrouted: (
    tenant: string,
    queue: string,
    gen: string,
    inboxes: readonly InboxRef[],
  ) => Promise<(number | undefined)[]>;
  /** The oldest open event in each of the inboxes of an integration. */
  readonly readOldestOpen: (inboxes: readonly InboxLook[]) => Promise<OldestOpen[]>;
}
