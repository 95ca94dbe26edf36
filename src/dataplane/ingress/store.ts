import type { IngressEvent, IngressQueue } from '../../record/ingress-store.ts';

/** Queue configuration needed by the ingress. `gen` and `cfgv` are compared with the current values on each ingest. */
export type QueueConfig = IngressQueue;

/** Event to be stored: metadata from the request, plus the unchanged body. `id` is undefined unless set by the sender. */
export type IngestItem = Omit<IngressEvent, 'id'> & { readonly id: string | undefined };

/**
 * Store answer for an event. OK (stored) and DUP (already known) are both acknowledged, with the id of the event: the
 * sender's, or the one given by the store. STALE means that the configuration has changed, CLOSED that the queue doesn't
 * accept events, GONE that there is no such queue, FULL that the quota is used up, and RESERVED that the sender's id is
 * one that only the store gives. With UNAVAILABLE, the result is unknown.
 */
export type IngestAnswer =
  | { readonly answer: 'OK' | 'DUP'; readonly ref: string; readonly id: string }
  | { readonly answer: 'STALE' | 'CLOSED' | 'FULL' | 'GONE' | 'RESERVED' | 'UNAVAILABLE' };

/** Result of an ingest call. Contains one answer per item, in the same order. */
export interface Stored {
  readonly answers: readonly IngestAnswer[];
  /** Set if there are only answers for the first items. The others were not stored, and belong in the next call. */
  readonly isPartial?: boolean;
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
  /** Stores events of a queue, or the first ones, in one atomic script call of up to 64 items and 1 MiB of bodies. */
  ingest: (tenant: string, queue: string, config: QueueConfig, items: readonly IngestItem[]) => Promise<Stored>;
}
