import type { HttpLimits } from '../../http/server.ts';

/** Bounds of the ingress role. Sizes in bytes, times in milliseconds. */
export interface IngressLimits extends HttpLimits {
  /** One event's body; more is 413. */
  readonly bodyBytes: number;
  /** One ingest call. */
  readonly batchItems: number;
  readonly batchBytes: number;
  /** Bodies held in memory by the whole process, waiting or in flight; more is 503. */
  readonly heldBytes: number;
  /** Bodies held for one queue, so that one slow queue cannot use up what all share; more is 503. */
  readonly heldBytesPerQueue: number;
  /** Bodies of sandbox events held in memory by the whole process; more is 503. */
  readonly sandboxHeldBytes: number;
  /** Without an answer of the store after this, the request is answered 503. */
  readonly ingestTimeoutMs: number;
  /** How often the masters of Redis are asked how full they are. */
  readonly memoryLookMs: number;
  /** From this part of the maxmemory of any master on, new events are answered 503 … */
  readonly memoryStopRatio: number;
  /** … until all of them are below this. */
  readonly memoryGoOnRatio: number;
  /** How long a key that was found valid is trusted without asking again. */
  readonly keyTtlMs: number;
  /** How long a queue's configuration is used without asking again; see queue-cache.ts. */
  readonly queueTtlMs: number;
  /** Most keys, and most queues, that are remembered. */
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
  // Longer than the 60 s after which common load balancers give up an idle connection: the side that may still be
  // sending should be the one that closes.
  keepAliveTimeoutMs: 65_000,
  drainTimeoutMs: 10_000,
};
