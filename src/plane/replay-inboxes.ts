import type { InboxRef } from './inbox-ref.ts';
import type { ReplayPrice, ReplayRefusal, ReplaySelection } from './replay-prices.ts';

/** The lifetime of a chunk, which is longer than the period within which a chunk can be repeated. */
export const CHUNK_TTL_MS = 24 * 3_600_000;

/** A chunk of a replay, containing events of a single inbox. */
export interface ReplayChunk {
  readonly inbox: InboxRef;
  readonly replayId: string;
  readonly number: number;
  readonly refs: readonly string[];
  /** The result returned by `placeOf` when the replay was charged. */
  readonly place: string;
}

/** Prices replays of inbox events, and puts these events into lanes. */
export interface ReplayInboxes {
  readonly price: (
    inbox: InboxRef,
    selection: ReplaySelection,
  ) => Promise<ReplayPrice | { readonly answer: ReplayRefusal }>;
  /** Returns the slot and the part of an inbox. Both are needed to complete a replay. */
  readonly placeOf: (inbox: InboxRef) => Promise<string>;
  /**
   * Adds a chunk once. Repeated calls return the same result, which contains one letter for each event: t (added), o
   * (still open), or g (expired). Returns undefined if the inbox is not known.
   */
  readonly enqueue: (chunk: ReplayChunk) => Promise<string | undefined>;
  /** Something of it can be claimed now. */
  readonly wake: (inbox: InboxRef) => Promise<void>;
}
