import type { InboxRef } from './inbox-ref.ts';

/** How far an inbox is known to be settled: `0-0` at first, then as the last look answered. */
export interface InboxLook extends InboxRef {
  readonly settledTo: string;
}

export interface OldestOpen {
  /** When the oldest open event was accepted, ms; undefined when none is open. */
  readonly ms: number | undefined;
  /** False: nothing older than `ms` is open, and a further look from `settledTo` on may find out more. */
  readonly exact: boolean;
  readonly settledTo: string;
}

/** What waits for a subscription, read without a write and bounded in each call. */
export interface BacklogStore {
  /**
   * When the oldest event was accepted that has not been routed to each subscription yet, ms; undefined when it is
   * behind nothing.
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
