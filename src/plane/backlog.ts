import type { InboxRef } from './inbox-ref.ts';

/** The position up to which an inbox is settled. Initially `0-0`, then the value returned by the last call. */
export interface InboxLook extends InboxRef {
  readonly settledTo: string;
}

export interface OldestOpen {
  /** Acceptance time of the oldest open event in ms. Undefined if there are no open events. */
  readonly ms: number | undefined;
  /** False if no open event is older than `ms`. Another call starting at `settledTo` may find more open events. */
  readonly exact: boolean;
  readonly settledTo: string;
}

/** Reads a subscription's waiting events. Nothing is written. The cost of each call is limited. */
export interface BacklogStore {
  /**
   * The acceptance time of the oldest event that has not been routed to a subscription, in milliseconds. Undefined for
   * a subscription that is not behind.
   *
   * @param gen generation of the queue
   */
  readonly readUnrouted: (
    tenant: string,
    queue: string,
    gen: string,
    inboxes: readonly InboxRef[],
  ) => Promise<(number | undefined)[]>;
  /** The oldest open event in each inbox of an integration. */
  readonly readOldestOpen: (inboxes: readonly InboxLook[]) => Promise<OldestOpen[]>;
}
