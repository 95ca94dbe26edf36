import type { InboxRef } from './inbox-ref.ts';
import type { ReplayPrice, ReplayRefusal, ReplaySelection } from './replay-prices.ts';

/** Longer than anybody may repeat a chunk. */
export const CHUNK_TTL_MS = 24 * 3_600_000;

/** One chunk of a replay, with events of one inbox. */
export interface ReplayChunk {
  readonly inbox: InboxRef;
  readonly replayId: string;
  readonly number: number;
  readonly refs: readonly string[];
  /** Result of `placeOf` at the time of the charge. */
  readonly place: string;
}

/** Where the events of inboxes are priced, and put into lanes. */
export interface ReplayInboxes {
  readonly price: (
    inbox: InboxRef,
    selection: ReplaySelection,
  ) => Promise<ReplayPrice | { readonly answer: ReplayRefusal }>;
  /** Returns the slot and part of an inbox, which is needed to complete the replay. */
  readonly placeOf: (inbox: InboxRef) => Promise<string>;
  /**
   * Adds a chunk once. Repeated calls return the same result, one letter per event: t (added), o (still open), or g
   * (expired). Undefined while the inbox is unknown.
   */
  readonly enqueue: (chunk: ReplayChunk) => Promise<string | undefined>;
  /** Something of it can be claimed now. */
  readonly wake: (inbox: InboxRef) => Promise<void>;
}
