import type { EventMeta } from '../core/events/event-meta.ts';
import type { EventState } from '../core/events/event-state.ts';
import type { Permission } from './inbox-reader.ts';
import type { InboxRef } from './inbox-ref.ts';

/** A single delivery: either the first delivery of an event or one of its replays. */
export interface DeliveryRef {
  readonly ref: string;
  readonly replayId?: string | undefined;
}

/**
 * OK: has been ended now; an outcome: it ended with this outcome before; UNKNOWN: it was never in this inbox, or its
 * record is too old.
 */
export type FinishAnswer = 'OK' | 'UNKNOWN' | Extract<EventState, 'delivered' | 'dead' | 'skipped' | 'expired'>;

export interface PulledEvent extends DeliveryRef {
  readonly groupKey: string;
  readonly meta: EventMeta;
  readonly body: Buffer;
}

/** Operations on an integration's inbox. All operations are free of charge and can be safely repeated. */
export interface InboxOperations {
  /**
   * Ends an open event without delivering it. The result of an attempt in progress is ignored. GONE: the subscription
   * does not exist.
   */
  readonly skip: (inbox: InboxRef, delivery: DeliveryRef) => Promise<FinishAnswer | 'GONE'>;
  /**
   * Skips all open first deliveries up to and including `ref`. If a group key is given, only events with this key are
   * skipped. Each call processes 200 deliveries. Repeat the call using the returned cursor until there is no cursor
   * anymore.
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
   * Marks up to 250 deliveries as delivered. The deliveries can be in any order. PUSHED: the subscription has an
   * endpoint, so only a 2xx response can acknowledge events.
   */
  readonly acknowledge: (
    inbox: InboxRef,
    deliveries: readonly DeliveryRef[],
  ) => Promise<
    { readonly answer: 'OK'; readonly answers: readonly FinishAnswer[] } | { readonly answer: 'GONE' | 'PUSHED' }
  >;
  /**
   * Returns open events that can be pulled by a subscription without an endpoint: the first event of each group key,
   * starting with the oldest. If `all` is set, later events are included as well, in order and grouped by their key.
   * Limited to `limit` (≤ 250) events and about 4 MiB. Events that are not acknowledged will be returned again.
   */
  readonly pull: (
    inbox: InboxRef,
    options: { readonly limit: number; readonly all?: boolean },
  ) => Promise<
    | { readonly answer: 'OK'; readonly events: readonly PulledEvent[]; readonly more: boolean }
    | { readonly answer: Exclude<Permission, 'OPEN' | 'INACTIVE'> | 'PUSHED' }
  >;
}
