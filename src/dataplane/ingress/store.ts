import type { IngressEvent, IngressQueue } from '../../redis/ingress-store.ts';

/** What ingress needs to know of one queue. The store compares `gen` and `cfgv` with its own at each ingest. */
export type QueueConfig = IngressQueue;

/** One event as it is stored: what was lifted from the request, and the body byte by byte. */
export type IngestItem = IngressEvent;

/**
 * OK stored, DUP known already (both acknowledged); STALE the configuration changed; CLOSED the queue takes no more;
 * GONE it does not exist; FULL its quota is used up; UNAVAILABLE nothing is known and nothing was promised.
 */
export type IngestAnswer =
  | { readonly answer: 'OK' | 'DUP'; readonly ref: string }
  | { readonly answer: 'STALE' | 'CLOSED' | 'FULL' | 'GONE' | 'UNAVAILABLE' };

/** What became of one call: an answer for each item, in order. */
export interface Stored {
  readonly answers: readonly IngestAnswer[];
  /** Nobody may be told before this resolves: then a router is sure to look at what was stored. Absent: it is sure now. */
  readonly seen?: Promise<void>;
}

/** What ingress asks of the store. A promise that is rejected counts as unavailable. */
export interface IngressStore {
  /** Queue configuration; null: does not exist (404); 'unavailable': control state missing or unreadable (503). */
  readQueue: (tenant: string, queue: string) => Promise<QueueConfig | null | 'unavailable'>;
  /** Is this SHA-256 (hex) of an ingress key valid for the tenant now? 'unavailable' as above. */
  checkKey: (tenant: string, sha256: string) => Promise<boolean | 'unavailable'>;
  /** One atomic script call for one queue, at most 64 items and 1 MiB of bodies. */
  ingest: (tenant: string, queue: string, config: QueueConfig, items: readonly IngestItem[]) => Promise<Stored>;
}
