import type { EventMeta } from '../core/events/event-meta.ts';
import type { EventProgress, EventState } from '../core/events/event-state.ts';
import type { InboxRef } from './inbox-ref.ts';

/** Selects events of an inbox by state and acceptance time (in milliseconds, not including `toMs`). */
export interface EventRange {
  /** All when absent. */
  readonly states?: readonly EventState[];
  readonly fromMs?: number;
  readonly toMs?: number;
}

export interface WalkedEvent {
  readonly ref: string;
  /** The replay id. Only set for replays. */
  readonly replayId?: string;
  /** Undefined if the event has expired. */
  readonly groupKey: string | undefined;
  readonly progress: EventProgress;
}

export interface ListedEvent extends WalkedEvent {
  /** The time at which the event was accepted by ingress, in milliseconds. */
  readonly acceptedMs: number;
  /** Undefined if the event has expired, in which case only its state is available. */
  readonly meta: EventMeta | undefined;
  /** The body size. */
  readonly bytes: number | undefined;
  /** The price of a replay. */
  readonly tokens: number | undefined;
}

export type EventList =
  | { readonly answer: 'OK'; readonly events: readonly ListedEvent[]; readonly cursor: string | undefined }
  | { readonly answer: 'GONE' | 'BAD_CURSOR' };

export interface InspectedEvent {
  readonly ref: string;
  readonly acceptedMs: number;
  readonly groupKey: string | undefined;
  readonly meta: EventMeta | undefined;
  readonly bytes: number | undefined;
  readonly tokens: number | undefined;
  /** Undefined if the event has expired, or if the body is withheld. */
  readonly body: Buffer | undefined;
  /**
   * The reason for hiding the body. In this case, the partner has not received the event, and can't receive it at the
   * moment.
   */
  readonly withheld: Exclude<Permission, 'OPEN'> | undefined;
  readonly progress: EventProgress;
  /** The last 20 replays, and all open replays. */
  readonly replays: readonly (EventProgress & { readonly replayId: string })[];
  /** The responses to failed attempts which are still stored, starting with the oldest. */
  readonly responses: readonly {
    readonly replayId?: string;
    readonly attempt: number;
    readonly body: Buffer;
    /** The response was longer. */
    readonly truncated: boolean;
  }[];
}

/**
 * PAUSED: the subscription is suspended, or covered by a Block. INACTIVE: the group key is not active. CLOSED:
 * currently unknown, retry.
 */
export type Permission = 'OPEN' | 'CLOSED' | 'PENDING' | 'REVOKED' | 'GONE' | 'PAUSED' | 'INACTIVE';

/** Reads inboxes. Doesn't use any tokens or change anything. */
export interface InboxReader {
  /**
   * Returns a page of up to `limit` (≤ 250) events, in the order in which they were accepted. The page may contain
   * fewer events even if there is a cursor.
   */
  readonly list: (
    inbox: InboxRef,
    options: EventRange & {
      readonly newestFirst?: boolean;
      readonly cursor?: string | undefined;
      readonly limit: number;
    },
  ) => Promise<EventList>;
  /**
   * Returns an event or a test event, including its attempts. UNKNOWN: it was never in this inbox, or its record is too
   * old.
   */
  readonly inspect: (
    inbox: InboxRef,
    ref: string,
  ) => Promise<{ readonly answer: 'OK'; readonly event: InspectedEvent } | { readonly answer: 'GONE' | 'UNKNOWN' }>;
}
