import type { EventMeta } from '../core/events/event-meta.ts';
import type { EventProgress } from '../core/events/event-state.ts';
import type { NotRoutedReason } from '../core/routing/reasons.ts';
import type { InboxRef } from './inbox-ref.ts';

/** A queue as routing finds it. */
export interface QueueReading {
  /** closing: no longer accepts events. missing: Redis has no state or has lost it. */
  readonly state: 'open' | 'closing' | 'missing';
  readonly gen: string;
  /** Progress of routing: `ms-seq`. */
  readonly cursor: string;
}

/** State of an integration in Redis, for a stream and a group key. Lost state looks like state that never existed. */
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
  /** Of its body. */
  readonly bytes: number;
}

/** Disposition of an event for one integration, as stored in Redis. */
export interface DispositionReading {
  readonly subscription: { readonly id: string; readonly behindAt: string | undefined } | undefined;
  readonly progress: EventProgress | undefined;
  /** Time of activation of its group key in ms. Undefined if it isn't active. */
  readonly activatedSinceMs: number | undefined;
  readonly noted: NotRoutedReason | undefined;
}

/** Reads the routing state and past decisions. Read-only. */
export interface RoutingReader {
  readonly readQueue: (tenant: string, queue: string) => Promise<QueueReading>;
  /** Returns the stored bytes of a stream, as they count for its quota and for the limit of its account. */
  readonly readStoredBytes: (tenant: string, queue: string) => Promise<number>;
  readonly readGate: (
    tenant: string,
    queue: QueueReading & { readonly name: string },
    integration: string,
    groupKey: string,
  ) => Promise<GateReading>;
  /**
   * An event of a queue by the id that the producer gave it; of several within 36 h, the youngest. Ids are remembered for
   * 24 h at least, refs as long as the event is kept.
   */
  readonly findEvent: (
    tenant: string,
    queue: string,
    wanted: { readonly eventId: string } | { readonly ref: string },
  ) => Promise<FoundEvent | undefined>;
  /** @param inbox inbox of a subscription that receives no more events; earlier results are read from it */
  readonly readDisposition: (
    tenant: string,
    queue: string,
    integration: string,
    event: { readonly ref: string; readonly groupKey: string },
    inbox?: InboxRef,
  ) => Promise<DispositionReading>;
}
