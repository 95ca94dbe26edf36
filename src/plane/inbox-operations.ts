import type { EventMeta } from '../core/events/event-meta.ts';
import type { EventState } from '../core/events/event-state.ts';
import type { Permission } from './inbox-reader.ts';
import type { InboxRef } from './inbox-ref.ts';

/** A single delivery. This is either the first delivery of an event or one of its replays. */
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

/**
 * Operations that an integration can use for its own inbox. They are free of charge, and all of them can be repeated
 * safely.
 */
export interface InboxOperations {
  /**
   * Ends an open event without delivering it. If an attempt is in progress, its result is ignored. GONE: the
   * subscription does not exist.
   */
  readonly skip: (inbox: InboxRef, delivery: DeliveryRef) => Promise<FinishAnswer | 'GONE'>;
  /**
   * Skips all open first deliveries up to and including `ref`. If a group key is given, only events with this key are
   * skipped. Each call will process 200 deliveries. You should repeat the call using the returned cursor until there is
   * no cursor any more.
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
   * Marks up to 250 deliveries as delivered. They can be in any order. PUSHED: the subscription has an endpoint, so
   * events can only be acknowledged by a 2xx response.
   */
  readonly acknowledge: (
    inbox: InboxRef,
    deliveries: readonly DeliveryRef[],
  ) => Promise<
    { readonly answer: 'OK'; readonly answers: readonly FinishAnswer[] } | { readonly answer: 'GONE' | 'PUSHED' }
  >;
  /**
   * Returns the open events that can be pulled by a subscription without an endpoint. This is the first event of each
   * group key, starting with the oldest. If `all` is set, the events after that are included as well, in order and
   * grouped by their key. Limited to `limit` (≤ 250) events and about 4 MiB. If an event is not acknowledged, it will
   * be returned again.
   */
  readonly pull: (
    inbox: InboxRef,
    options: { readonly limit: number; readonly all?: boolean },
  ) => Promise<
    | { readonly answer: 'OK'; readonly events: readonly PulledEvent[]; readonly more: boolean }
    | { readonly answer: Exclude<Permission, 'OPEN' | 'INACTIVE'> | 'PUSHED' }
  >;
}
