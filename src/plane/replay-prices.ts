import type { EventState } from '../core/events/event-state.ts';
import type { Permission } from './inbox-reader.ts';

/** States that can be replayed. Open events are still delivered. */
export const REPLAYABLE_STATES = ['delivered', 'dead', 'skipped', 'expired'] as const satisfies readonly EventState[];
export type ReplayableState = (typeof REPLAYABLE_STATES)[number];

/**
 * Events to replay: one event, or all events accepted from `fromMs` (inclusive) to `toMs` (exclusive) with one of the
 * given states.
 */
export type ReplaySelection =
  | { readonly ref: string }
  | {
      readonly fromMs: number;
      readonly toMs: number;
      readonly states: readonly ReplayableState[];
      /** The position at which the previous operation ended. */
      readonly cursor?: string | undefined;
    };

export interface PricedEvent {
  readonly ref: string;
  readonly tokens: number;
}

/**
 * OPEN_EVENT: the event has not ended yet. EXPIRED: the event was removed because its retention period has ended.
 * UNKNOWN: it never was here. All other results mean that the subscription, or the group key of the event, currently
 * can't receive events.
 */
export type ReplayRefusal = Exclude<Permission, 'OPEN'> | 'UNKNOWN' | 'EXPIRED' | 'OPEN_EVENT' | 'BAD_CURSOR';

export interface ReplayPrice {
  readonly answer: 'OK';
  /** The events are sorted, oldest first. Each event is charged again. */
  readonly events: readonly PricedEvent[];
  readonly tokens: number;
  /**
   * Set if there are (or may be) more events in the range because each operation can only process a limited number of
   * events.
   */
  readonly cursor: string | undefined;
}

/** The maximum number of events in an operation. */
export const REPLAYED_AT_ONCE = 10_000;
