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

/** Operations of an integration on its own inbox. All of them are free and can be repeated. */
export interface InboxOperations {
  /**
   * Ends one open event without delivering it. If an attempt is in progress, its result is ignored. GONE: the
   * subscription does not exist.
   */
  readonly skip: (inbox: InboxRef, delivery: DeliveryRef) => Promise<FinishAnswer | 'GONE'>;
  /**
   * Skips open first deliveries up to and including `ref`, optionally for one group key. Processes 200 deliveries per
   * call. Repeat with the returned cursor until there is none.
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
   * Marks up to 250 deliveries as delivered, in any order. PUSHED: the subscription has an endpoint, so only a 2xx
   * response acknowledges events.
   */
  readonly acknowledge: (
    inbox: InboxRef,
    deliveries: readonly DeliveryRef[],
  ) => Promise<
    { readonly answer: 'OK'; readonly answers: readonly FinishAnswer[] } | { readonly answer: 'GONE' | 'PUSHED' }
  >;
  /**
   * Returns the open events that a subscription without an endpoint can pull: the first of each group key, oldest
   * first. With `all`, also the following events, in order and grouped by key. Limited to `limit` (≤ 250) events and
   * about 4 MiB. Events that are not acknowledged are returned again.
   */
  readonly pull: (
    inbox: InboxRef,
    options: { readonly limit: number; readonly all?: boolean },
  ) => Promise<
    | { readonly answer: 'OK'; readonly events: readonly PulledEvent[]; readonly more: boolean }
    | { readonly answer: Exclude<Permission, 'OPEN' | 'INACTIVE'> | 'PUSHED' }
  >;
}
