import type { EventMeta } from '../core/events/event-meta.ts';
import type { EventProgress } from '../core/events/event-state.ts';
import type { NotRoutedReason } from '../core/routing/reasons.ts';
import type { InboxRef } from './inbox-ref.ts';

/** The state of the queue for routing. */
export interface QueueReading {
  /** closing: no longer accepts events. missing: Redis does not contain any state or has lost it. */
  readonly state: 'open' | 'closing' | 'missing';
  readonly gen: string;
  /** The position up to which events have been routed: `ms-seq`. */
  readonly cursor: string;
}

/** The state in Redis for an integration, a stream, and a group key. Lost state looks like state that never existed. */
export interface GateReading {
  readonly integration: 'pending' | 'active' | 'closed' | 'missing';
  readonly activated: boolean;
  /** missing: the tenant's state is. */
  readonly subscription: 'none' | 'open' | 'paused' | 'missing';
}

export interface FoundEvent {
  readonly ref: string;
  /** `ms-seq` */
  readonly id: string;
  readonly meta: EventMeta;
  /** The body size. */
  readonly bytes: number;
}

/** The disposition of an event for an integration, as stored in Redis. */
export interface DispositionReading {
  readonly subscription: { readonly id: string; readonly behindAt: string | undefined } | undefined;
  readonly progress: EventProgress | undefined;
  /** The time at which the group key was activated, in milliseconds. Undefined if it is not active. */
  readonly activatedSinceMs: number | undefined;
  readonly noted: NotRoutedReason | undefined;
}

/** Reads the routing state and past decisions. Read-only. */
export interface RoutingReader {
  readonly readQueue: (tenant: string, queue: string) => Promise<QueueReading>;
  /**
   * Returns the number of stored bytes of a stream. The bytes count towards the quota of the stream and towards the
   * limit of the account.
   */
  readonly readStoredBytes: (tenant: string, queue: string) => Promise<number>;
  readonly readGate: (
    tenant: string,
    queue: QueueReading & { readonly name: string },
    integration: string,
    groupKey: string,
  ) => Promise<GateReading>;
  /**
   * Looks up an event of a queue using the producer's id. If there are several events within 36 h, returns the most
   * recent event. Ids are remembered for at least 24 hours, and refs as long as the event is kept.
   */
  readonly findEvent: (
    tenant: string,
    queue: string,
    wanted: { readonly eventId: string } | { readonly ref: string },
  ) => Promise<FoundEvent | undefined>;
  /**
   * Returns the inboxes of deleted subscriptions that an event was routed to. Such inboxes can be looked up like the
   * event.
   */
  readonly readFormerInboxes: (tenant: string, queue: string, ref: string) => Promise<readonly InboxRef[]>;
  /** @param inbox inbox of a subscription that receives no more events; earlier results are read from it */
  readonly readDisposition: (
    tenant: string,
    queue: string,
    integration: string,
    event: { readonly ref: string; readonly groupKey: string },
    inbox?: InboxRef,
  ) => Promise<DispositionReading>;
}
