import type { IngressEvent, IngressQueue } from '../../redis/ingress-store.ts';

/** Queue configuration needed by the ingress. `gen` and `cfgv` are compared with the current values on each ingest. */
export type QueueConfig = IngressQueue;

/** Event as stored: metadata from the request, plus the unchanged body. */
export type IngestItem = IngressEvent;

/**
 * Store answer for an event. OK (stored) and DUP (already known) are both acknowledged. STALE means that the
 * configuration has changed, CLOSED that the queue doesn't accept events, GONE that there is no such queue, and FULL
 * that the quota is used up. With UNAVAILABLE, the result is unknown.
 */
export type IngestAnswer =
  | { readonly answer: 'OK' | 'DUP'; readonly ref: string }
  | { readonly answer: 'STALE' | 'CLOSED' | 'FULL' | 'GONE' | 'UNAVAILABLE' };

/** Result of an ingest call. Contains one answer per item, in the same order. */
export interface Stored {
  readonly answers: readonly IngestAnswer[];
  /**
   * Don't send any answers until this promise resolves: it guarantees that a router will read the stored events. If
   * unset, this is already guaranteed.
   */
  readonly seen?: Promise<void>;
}

/** IngressStore is the part of the store used by the ingress. A rejected promise counts as unavailable. */
export interface IngressStore {
  /**
   * Reads the configuration of a queue. Null means that there is no such queue (404), and 'unavailable' that the
   * control state is missing or unreadable (503).
   */
  readQueue: (tenant: string, queue: string) => Promise<QueueConfig | null | 'unavailable'>;
  /**
   * Returns true if the given SHA-256 (hex) belongs to an ingress key currently valid for the tenant. Returns
   * 'unavailable' in the same cases as `readQueue`.
   */
  checkKey: (tenant: string, sha256: string) => Promise<boolean | 'unavailable'>;
  /** Stores events of a queue in one atomic script call, limited to 64 items and 1 MiB of bodies. */
  ingest: (tenant: string, queue: string, config: QueueConfig, items: readonly IngestItem[]) => Promise<Stored>;
}
