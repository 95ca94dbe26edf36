import type { HttpLimits } from '../../http/server.ts';

/** The limits of the ingress role. All sizes are in bytes and all times are in milliseconds. */
export interface IngressLimits extends HttpLimits {
  /** The maximum size of an event's body. A larger body is answered with 413. */
  readonly bodyBytes: number;
  /** The maximum number of events in an ingest call. */
  readonly batchItems: number;
  readonly batchBytes: number;
  /**
   * The maximum size of all bodies that the process holds in memory. If the limit is exceeded, the request is answered
   * with 503.
   */
  readonly heldBytes: number;
  /**
   * The maximum size of the bodies that are held for a queue. This prevents a slow queue from using all of the shared
   * memory. If the limit is exceeded, the request is answered with 503.
   */
  readonly heldBytesPerQueue: number;
  /**
   * The maximum size of all sandbox bodies that the process holds in memory. If the limit is exceeded, the request is
   * answered with 503.
   */
  readonly sandboxHeldBytes: number;
  /** The maximum time to wait for the store. If the store does not answer in time, the request is answered with 503. */
  readonly ingestTimeoutMs: number;
  /** The interval at which the memory usage of the Redis masters is read. */
  readonly memoryLookMs: number;
  /** New events are answered with 503 if a master uses this fraction of maxmemory or more. */
  readonly memoryStopRatio: number;
  /** New events are accepted after all masters have dropped below this fraction of maxmemory. */
  readonly memoryGoOnRatio: number;
  /** The time for which a valid key is cached. */
  readonly keyTtlMs: number;
  /** The time for which the configuration of a queue is cached. See queue-cache.ts. */
  readonly queueTtlMs: number;
  /** The maximum number of keys in the cache. The number of queues is limited to the same value. */
  readonly cacheEntries: number;
}

export const INGRESS_LIMITS: IngressLimits = {
  bodyBytes: 256 * 1024,
  batchItems: 64,
  batchBytes: 1024 * 1024,
  heldBytes: 64 * 1024 * 1024,
  heldBytesPerQueue: 16 * 1024 * 1024,
  sandboxHeldBytes: 4 * 1024 * 1024,
  ingestTimeoutMs: 5_000,
  memoryLookMs: 2_000,
  memoryStopRatio: 0.85,
  memoryGoOnRatio: 0.8,
  keyTtlMs: 5_000,
  queueTtlMs: 1_000,
  cacheEntries: 10_000,
  headerBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  connectionTimeoutMs: 60_000,
  // This is longer than 60 s, after which common load balancers close an idle connection. The side that may still be
  // sending should close the connection first.
  keepAliveTimeoutMs: 65_000,
  drainTimeoutMs: 10_000,
};
