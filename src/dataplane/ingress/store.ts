import type { IngressEvent, IngressQueue } from '../../redis/ingress-store.ts';

/**
 * The configuration of a queue that the ingress needs. The store compares `gen` and `cfgv` with the current values at
 * each ingest.
 */
export type QueueConfig = IngressQueue;

/** An event as it is stored, with the metadata from the request and the unchanged body. */
export type IngestItem = IngressEvent;

/**
 * The answer of the store for an event. OK means that it was stored and DUP that it was already known, and both are
 * acknowledged. STALE means that the configuration has changed. CLOSED means that the queue does not accept events,
 * GONE that it does not exist, and FULL that the quota is used up. UNAVAILABLE means that the result is unknown.
 */
export type IngestAnswer =
  | { readonly answer: 'OK' | 'DUP'; readonly ref: string }
  | { readonly answer: 'STALE' | 'CLOSED' | 'FULL' | 'GONE' | 'UNAVAILABLE' };

/** The result of an ingest call, with an answer for each item in the same order. */
export interface Stored {
  readonly answers: readonly IngestAnswer[];
  /**
   * Do not send any answers before this promise resolves. It ensures that a router will read the stored events. If it
   * is not set, this is already ensured.
   */
  readonly seen?: Promise<void>;
}

/**
 * IngressStore contains the functions of the store that the ingress uses. A rejected promise is treated as unavailable.
 */
export interface IngressStore {
  /**
   * Reads the configuration of a queue. Returns null if the queue does not exist (404), and 'unavailable' if the
   * control state is missing or unreadable (503).
   */
  readQueue: (tenant: string, queue: string) => Promise<QueueConfig | null | 'unavailable'>;
  /**
   * Returns true if the SHA-256 of an ingress key in hex is currently valid for the tenant. Returns 'unavailable' in
   * the same cases as `readQueue`.
   */
  checkKey: (tenant: string, sha256: string) => Promise<boolean | 'unavailable'>;
  /** Stores the events of a queue with one atomic script call. A call contains at most 64 items and 1 MiB of bodies. */
  ingest: (tenant: string, queue: string, config: QueueConfig, items: readonly IngestItem[]) => Promise<Stored>;
}
