import type { EventMeta } from '../core/events/event-meta.ts';
import type { EventState } from '../core/events/event-state.ts';
import type { Permission } from './inbox-reader.ts';
import type { InboxRef } from './inbox-ref.ts';

/** One delivery: an event's first, or one of its replays. */
export interface DeliveryRef {
  readonly ref: string;
  readonly replayId?: string | undefined;
}

/** OK: ended now; an outcome: it had ended so before; UNKNOWN: it never was here, or its record is too old. */
export type FinishAnswer = 'OK' | 'UNKNOWN' | Extract<EventState, 'delivered' | 'dead' | 'skipped' | 'expired'>;

export interface PulledEvent extends DeliveryRef {
  readonly groupKey: string;
  readonly meta: EventMeta;
  readonly body: Buffer;
}

/** What an integration does to its own inbox. Everything is free, and may be repeated. */
export interface InboxOperations {
  /** Ends one open event undelivered. A skip during an attempt wins, whatever that brings. GONE: no such subscription. */
  readonly skip: (inbox: InboxRef, delivery: DeliveryRef) => Promise<FinishAnswer | 'GONE'>;
  /**
   * Skips first deliveries that are open, up to and with `ref`, of one group key if one is given. Looks at 200 a call:
   * to be called again with the cursor while it gives one.
   */
  readonly skipUpTo: (
    inbox: InboxRef,
    ref: string,
    options?: { readonly groupKey?: string | undefined; readonly cursor?: string | undefined },
  ) => Promise<
    | { readonly answer: 'OK'; readonly skipped: number; readonly cursor: string | undefined }
    | { readonly answer: 'GONE' | 'BAD_CURSOR' | 'BAD_REF' }
  >;
  /**
   * Acknowledges up to 250 deliveries, in any order: they are delivered. PUSHED: the subscription has an endpoint, whose
   * 2xx alone acknowledges.
   */
  readonly acknowledge: (
    inbox: InboxRef,
    deliveries: readonly DeliveryRef[],
  ) => Promise<
    { readonly answer: 'OK'; readonly answers: readonly FinishAnswer[] } | { readonly answer: 'GONE' | 'PUSHED' }
  >;
  /**
   * Open events that a subscription without an endpoint may take now: the first of each group key, those that wait
   * longest first; `all`: also what follows them (in order, those of a key together). At most `limit` (≤ 250) and about
   * 4 MiB, so that one may be asked for again; what is not acknowledged comes again.
   */
  readonly pull: (
    inbox: InboxRef,
    options: { readonly limit: number; readonly all?: boolean },
  ) => Promise<
    | { readonly answer: 'OK'; readonly events: readonly PulledEvent[]; readonly more: boolean }
    | { readonly answer: Exclude<Permission, 'OPEN' | 'INACTIVE'> | 'PUSHED' }
  >;
}
