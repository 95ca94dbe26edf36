import type { HttpLimits } from '../../http/server.ts';

/** Ingress limits. All sizes are in bytes and all times are in milliseconds. */
export interface IngressLimits extends HttpLimits {
  /** The maximum number of connections of an address that is not a trusted proxy. More are closed. */
  readonly addressConnections: number;
  /**
   * The maximum number of connections. If there are more, those that have waited longest for their client are closed. A
   * connection uses up to 32 KiB while its headers arrive.
   */
  readonly connections: number;
  /** The maximum size of an event body. Anything larger is rejected with 413. */
  readonly bodyBytes: number;
  /** The maximum number of events in each call. */
  readonly batchItems: number;
  readonly batchBytes: number;
  /**
   * The maximum total size of bodies held by this process, including those that are arriving. A workspace can hold at
   * most as much as it leaves free. The same applies to the streams of a Redis master. If this is exceeded, the
   * response is a 503.
   */
  readonly heldBytes: number;
  /**
   * The maximum total size of bodies held for a single queue, to stop a slow queue from using up all of the shared
   * memory. If this is exceeded, the response is a 503.
   */
  readonly heldBytesPerQueue: number;
  /** The same for sandbox bodies. */
  readonly sandboxHeldBytes: number;
  /** The maximum time from the arrival of an event until it is stored. After that, it is rejected with 503. */
  readonly ingestTimeoutMs: number;
  /** The interval for reading the memory usage of the Redis masters. */
  readonly memoryLookMs: number;
  /**
   * If this fraction of maxmemory is used, the response for events of accounts that are above their share of it is 429,
   * starting with the largest accounts. Only applies to the streams of this master.
   */
  readonly memoryPressureRatio: number;
  /**
   * Fraction of maxmemory at which all new events for this master are rejected with 503. The rest is needed to route
   * stored events. For example, if all of them have 1 KiB, and a subscription which was paused for all of them is
   * resumed, routing will need about 16 %.
   */
  readonly memoryStopRatio: number;
  /** New events for a master are only accepted again when it uses less than this fraction of maxmemory. */
  readonly memoryGoOnRatio: number;
  /** Smallest share of an account. */
  readonly guaranteedBytes: number;
  /** The time for which valid keys are cached, unless it is known that no key was changed. */
  readonly keyTtlMs: number;
  /** The time for which valid keys are cached as long as no key is changed. */
  readonly keyKeptMs: number;
  /** The time for which a wrong key is remembered. During this time, it is refused without asking the store. */
  readonly wrongKeyTtlMs: number;
  /**
   * The time for which the limits and the stored bytes of a queue are used after they were read. See queue-cache.ts.
   */
  readonly queueTtlMs: number;
  /** The time for which a queue's remaining configuration is cached after it was used last. */
  readonly queueKeptMs: number;
  /** The maximum number of cached keys. The limit is the same for wrong keys, and for queues. */
  readonly cacheEntries: number;
}

export const INGRESS_LIMITS: IngressLimits = {
  addressConnections: 512,
  connections: 2_048,
  bodyBytes: 256 * 1024,
  batchItems: 64,
  batchBytes: 1024 * 1024,
  heldBytes: 64 * 1024 * 1024,
  heldBytesPerQueue: 16 * 1024 * 1024,
  sandboxHeldBytes: 4 * 1024 * 1024,
  ingestTimeoutMs: 5_000,
  memoryLookMs: 1_000,
  memoryPressureRatio: 0.7,
  memoryStopRatio: 0.82,
  memoryGoOnRatio: 0.77,
  guaranteedBytes: 4 * 1024 * 1024,
  keyTtlMs: 5_000,
  keyKeptMs: 300_000,
  wrongKeyTtlMs: 1_000,
  queueTtlMs: 1_000,
  queueKeptMs: 60_000,
  cacheEntries: 10_000,
  headerBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  connectionTimeoutMs: 60_000,
  // Longer than 60 s because common load balancers close an idle connection after that time. The side that may still be
  // sending should close the connection first.
  keepAliveTimeoutMs: 65_000,
  lingerTimeoutMs: 5_000,
  drainTimeoutMs: 10_000,
};
