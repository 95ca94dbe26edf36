import type { InboxRef } from './inbox-ref.ts';

/** Position up to which an inbox is settled. Initially `0-0`, then the value returned by the last call. */
export interface InboxLook extends InboxRef {
  readonly settledTo: string;
}

export interface OldestOpen {
  /** Acceptance time of the oldest open event in ms. Undefined if none is open. */
  readonly ms: number | undefined;
  /** False if no event older than `ms` is open. A further call starting at `settledTo` may find more. */
  readonly exact: boolean;
  readonly settledTo: string;
}

/** What waits for a subscription, read without a write and bounded in each call. */
export interface BacklogStore {
  /**
   * Acceptance time of the oldest event that was not routed to each subscription yet, in ms. Undefined for a
   * subscription that is not behind.
   *
   * @param gen generation of the queue
   */
  readonly readUnrouted: (
    tenant: string,
    queue: string,
    gen: string,
    inboxes: readonly InboxRef[],
  ) => Promise<(number | undefined)[]>;
  /** The oldest open event of each inbox of one integration. */
  readonly readOldestOpen: (inboxes: readonly InboxLook[]) => Promise<OldestOpen[]>;
}
