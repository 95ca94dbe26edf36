import type { EventMeta } from '../core/events/event-meta.ts';
import type { EventProgress, EventState } from '../core/events/event-state.ts';
import type { InboxRef } from './inbox-ref.ts';

/** Which events of an inbox: by state, and by when they were accepted (ms; `toMs` is not in it). */
export interface EventRange {
  /** All when absent. */
  readonly states?: readonly EventState[];
  readonly fromMs?: number;
  readonly toMs?: number;
}

export interface WalkedEvent {
  readonly ref: string;
  /** Of a replay: its id. */
  readonly replayId?: string;
  /** undefined if the event has expired. */
  readonly groupKey: string | undefined;
  readonly progress: EventProgress;
}

export interface ListedEvent extends WalkedEvent {
  /** When ingress accepted it, ms. */
  readonly acceptedMs: number;
  /** undefined if the event has expired. Only its state remains. */
  readonly meta: EventMeta | undefined;
  /** Of its body. */
  readonly bytes: number | undefined;
  /** What a replay costs. */
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
  /** undefined if the event has expired or the body is withheld. */
  readonly body: Buffer | undefined;
  /** Reason why the body is hidden: the partner has not received the event, and currently can't. */
  readonly withheld: Exclude<Permission, 'OPEN'> | undefined;
  readonly progress: EventProgress;
  /** The last 20, and all that are open. */
  readonly replays: readonly (EventProgress & { readonly replayId: string })[];
  /** Responses to failed attempts that are still stored, oldest first. */
  readonly responses: readonly {
    readonly replayId?: string;
    readonly attempt: number;
    readonly body: Buffer;
    /** The answer was longer. */
    readonly truncated: boolean;
  }[];
}

/**
 * PAUSED: covered by a Block, or suspended. INACTIVE: the group key is not active. CLOSED: currently unknown, retry.
 */
export type Permission = 'OPEN' | 'CLOSED' | 'PENDING' | 'REVOKED' | 'GONE' | 'PAUSED' | 'INACTIVE';

/** Reads inboxes. Doesn't use any tokens or change anything. */
export interface InboxReader {
  /** A page of at most `limit` (≤ 250) events, in the order of acceptance; it may be short and have a cursor. */
  readonly list: (
    inbox: InboxRef,
    options: EventRange & {
      readonly newestFirst?: boolean;
      readonly cursor?: string | undefined;
      readonly limit: number;
    },
  ) => Promise<EventList>;
  /** One event, or test event, with its attempts. UNKNOWN: it never was here, or its record is too old. */
  readonly inspect: (
    inbox: InboxRef,
    ref: string,
  ) => Promise<{ readonly answer: 'OK'; readonly event: InspectedEvent } | { readonly answer: 'GONE' | 'UNKNOWN' }>;
}
