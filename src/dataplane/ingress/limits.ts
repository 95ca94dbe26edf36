import type { HttpLimits } from '../../http/server.ts';

/** Ingress limits. Sizes are in bytes, times in milliseconds. */
export interface IngressLimits extends HttpLimits {
  /** Maximum size of an event body. Anything larger is answered with 413. */
  readonly bodyBytes: number;
  /** Maximum number of events per ingest call. */
  readonly batchItems: number;
  readonly batchBytes: number;
  /** Maximum total size of bodies held by this process. Requests are answered with 503 once exceeded. */
  readonly heldBytes: number;
  /**
   * Maximum total size of bodies held for a single queue, to stop a slow queue from using up all of the shared memory.
   * Requests are answered with 503 once exceeded.
   */
  readonly heldBytesPerQueue: number;
  /** Maximum total size of sandbox bodies held by this process. Requests are answered with 503 once exceeded. */
  readonly sandboxHeldBytes: number;
  /** Maximum time to wait for the store. After that, the request is answered with 503. */
  readonly ingestTimeoutMs: number;
  /** Interval for reading the memory usage of the Redis masters. */
  readonly memoryLookMs: number;
  /**
   * Fraction of maxmemory from which on events of accounts above their share of it are answered with 429, the largest
   * accounts first. Only concerns the streams of this master.
   */
  readonly memoryPressureRatio: number;
  /**
   * Fraction of maxmemory at which all new events for this master are answered with 503. The rest is needed to route
   * stored events. If all of them have 1 KiB, and a paused subscription to all of them is resumed, routing needs 14 %.
   */
  readonly memoryStopRatio: number;
  /** Fraction of maxmemory that a master must drop below before its new events are accepted again. */
  readonly memoryGoOnRatio: number;
  /** Smallest share of an account. */
  readonly guaranteedBytes: number;
  /** How long a valid key is cached. */
  readonly keyTtlMs: number;
  /** How long a wrong key is remembered, and refused without asking the store. */
  readonly wrongKeyTtlMs: number;
  /** How long a queue configuration is cached. See queue-cache.ts. */
  readonly queueTtlMs: number;
  /** Maximum number of cached keys. The same limit applies to wrong keys, and to queues. */
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
  memoryLookMs: 1_000,
  memoryPressureRatio: 0.7,
  memoryStopRatio: 0.85,
  memoryGoOnRatio: 0.8,
  guaranteedBytes: 4 * 1024 * 1024,
  keyTtlMs: 5_000,
  wrongKeyTtlMs: 1_000,
  queueTtlMs: 1_000,
  cacheEntries: 10_000,
  headerBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  connectionTimeoutMs: 60_000,
  // Must be longer than 60 s, when common load balancers close an idle connection. It's the side that may still be
  // sending that should close the connection first.
  keepAliveTimeoutMs: 65_000,
  drainTimeoutMs: 10_000,
};
