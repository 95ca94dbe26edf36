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
      /** Where the operation before ended. */
      readonly cursor?: string | undefined;
    };

export interface PricedEvent {
  readonly ref: string;
  readonly tokens: number;
}

/**
 * OPEN_EVENT: the event has not ended yet. EXPIRED: retention removed it. UNKNOWN: it never was here. The others: the
 * subscription, or the event's group key, may not be given events now.
 */
export type ReplayRefusal = Exclude<Permission, 'OPEN'> | 'UNKNOWN' | 'EXPIRED' | 'OPEN_EVENT' | 'BAD_CURSOR';

export interface ReplayPrice {
  readonly answer: 'OK';
  /** Oldest first; each costs its tokens again. */
  readonly events: readonly PricedEvent[];
  readonly tokens: number;
  /** Set if the range has, or may have, more events, because each operation is limited. */
  readonly cursor: string | undefined;
}

/** Events that one operation takes. */
export const REPLAYED_AT_ONCE = 10_000;
