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
  /** undefined where retention removed the event. */
  readonly groupKey: string | undefined;
  readonly progress: EventProgress;
}

export interface ListedEvent extends WalkedEvent {
  /** When ingress accepted it, ms. */
  readonly acceptedMs: number;
  /** undefined if retention removed the event; then only its progress is known. */
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
  /** undefined where retention removed it, or it is withheld. */
  readonly body: Buffer | undefined;
  /** Why the body is not shown: the partner has not got it, and may not now. */
  readonly withheld: Exclude<Permission, 'OPEN'> | undefined;
  readonly progress: EventProgress;
  /** The last 20, and all that are open. */
  readonly replays: readonly (EventProgress & { readonly replayId: string })[];
  /** What failed attempts were answered with, of those that are still kept; oldest first. */
  readonly responses: readonly {
    readonly replayId?: string;
    readonly attempt: number;
    readonly body: Buffer;
    /** The answer was longer. */
    readonly truncated: boolean;
  }[];
}

/** PAUSED: covered by a Block, or suspended. INACTIVE: its group key is. CLOSED: unknown now, ask again. */
export type Permission = 'OPEN' | 'CLOSED' | 'PENDING' | 'REVOKED' | 'GONE' | 'PAUSED' | 'INACTIVE';

/** Looks into inboxes. Nothing here costs tokens, and nothing changes. */
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
