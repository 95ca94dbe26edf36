import { type Backoff, backoffMs } from '../../time/backoff.ts';
import type { Clock } from '../../time/clock.ts';
import { createDelayedKeys } from './delay-heap.ts';
import type { QueueMetrics } from './queue-metrics.ts';
import { createWaitingKeys, firstOf, type Order, type WaitingKeys } from './turns.ts';

/** Backoff for failing keys. There is no jitter, same as in client-go. */
const RETRY: Backoff = { firstMs: 5, mostMs: 1_000_000 };

/**
 * Backoff for conflicts. It only needs to cover a slightly delayed watch, because a newer object enqueues its key as
 * soon as it arrives. Longer delays would delay changes. Shorter delays would increase the load on an API server with
 * delayed watches.
 */
const CONFLICT_RETRY: Backoff = { firstMs: 5, mostMs: 200 };

/**
 * A queue of keys with the semantics of client-go's rate limiting work queue, except that tenants take turns and
 * deletions come first.
 */
export type WorkQueue = {
  /**
   * Adds a key. Does nothing if the key is already waiting. A key that is currently being processed will be processed
   * again afterwards.
   */
  readonly add: (key: string) => void;
  /** Adds a key with the lowest priority. Used at startup and by the audit so that current changes won't be delayed. */
  readonly addInBackground: (key: string) => void;
  readonly addAfter: (key: string, delayMs: number) => void;
  /** Adds a key after the backoff for its previous failures, and increments its failure count. */
  readonly addRateLimited: (key: string) => void;
  /**
   * Adds a key again after a conflict. A conflict is not considered to be a failure, and delays the key by at most 200
   * ms.
   */
  readonly addAfterConflict: (key: string) => void;
  /** Resets the number of failures and conflicts for a key. */
  readonly forget: (key: string) => void;
  readonly numRequeues: (key: string) => number;
  /**
   * Waits for the next key. Returns undefined if the queue has been shut down. The caller must call `done` for each
   * key.
   */
  readonly get: () => Promise<string | undefined>;
  readonly done: (key: string) => void;
  /** Returns true if the key is waiting, is being processed, or will be retried after a failure or a conflict. */
  readonly isPending: (key: string) => boolean;
  /** The number of waiting keys, not including delayed keys. */
  readonly depth: () => number;
  /** Drops all waiting keys and stops accepting new ones. Resolves when all keys in progress are done. */
  readonly shutDown: () => Promise<void>;
};

/**
 * Creates the place where workers wait for keys and keys wait for workers.
 *
 * @param onTaken called before a key is handed to a worker
 */
function createLine(waiting: WaitingKeys, onTaken: (key: string) => void) {
  const workers: ((key: string | undefined) => void)[] = [];
  let closed = false;

  /** Hands waiting keys to waiting workers. */
  function hand(): void {
    while (workers.length > 0) {
      const key = waiting.take();
      if (key === undefined) return;
      onTaken(key);
      workers.shift()?.(key);
    }
  }

  return {
    hand,
    has: waiting.has,
    size: waiting.size,
    add: (key: string, order: Order) => waiting.add(key, order),
    get(): Promise<string | undefined> {
      if (closed) return Promise.resolve(undefined);
      return new Promise(resolve => {
        workers.push(resolve);
        hand();
      });
    },
    /** Drops all keys and stops all workers that are waiting. */
    close(): void {
      closed = true;
      waiting.clear();
      for (const resolve of workers.splice(0)) resolve(undefined);
    },
  };
}

/** Counts the number of consecutive failures for each key. */
function createCounts(backoff: Backoff) {
  const counts = new Map<string, number>();
  const of = (key: string): number => counts.get(key) ?? 0;
  return {
    of,
    /** Increments the count and returns the delay in milliseconds. */
    add(key: string): number {
      const times = of(key) + 1;
      counts.set(key, times);
      return backoffMs(backoff, times);
    },
    forget: (key: string) => counts.delete(key),
  };
}

/** Records the waiting time and the processing time of keys. */
function createMeter(clock: Pick<Clock, 'nowMs'>, metrics: QueueMetrics | undefined, depth: () => number) {
  const addedMs = new Map<string, number>();
  const beganMs = new Map<string, number>();

  metrics?.observe(() => {
    const nowMs = clock.nowMs();
    const runningMs = [...beganMs.values()].map(ms => nowMs - ms);
    return {
      depth: depth(),
      unfinishedSeconds: runningMs.reduce((sum, ms) => sum + ms, 0) / 1_000,
      longestSeconds: Math.max(0, ...runningMs) / 1_000,
    };
  });

  return {
    added(key: string): void {
      metrics?.added();
      addedMs.set(key, clock.nowMs());
    },
    taken(key: string): void {
      const nowMs = clock.nowMs();
      beganMs.set(key, nowMs);
      metrics?.taken((nowMs - (addedMs.get(key) ?? nowMs)) / 1_000);
      addedMs.delete(key);
    },
    finished(key: string): void {
      const nowMs = clock.nowMs();
      metrics?.finished((nowMs - (beganMs.get(key) ?? nowMs)) / 1_000);
      beganMs.delete(key);
    },
    close(): void {
      addedMs.clear();
      metrics?.close();
    },
  };
}

export type WorkQueueOptions = {
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  readonly metrics?: QueueMetrics;
  readonly retry?: Backoff | undefined;
  /** Returns true if the key is currently used for a deletion. Defaults to no. */
  readonly isDeletion?: ((key: string) => boolean) | undefined;
  /** The number of workers. Slow keys can't use all of them. By default, they can. */
  readonly workers?: number | undefined;
};

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { clock, retry = RETRY, isDeletion, workers = Number.POSITIVE_INFINITY } = options;
  const orderOf = (key: string): Order => (isDeletion?.(key) ? 'deletion' : 'change');
  const waiting = createWaitingKeys({ clock, workers });
  const line = createLine(waiting, key => {
    processing.add(key);
    meter.taken(key);
  });
  const processing = new Set<string>();
  /** Keys added again while being processed, known as dirty keys in client-go. */
  const again = new Map<string, Order>();
  const failures = createCounts(retry);
  const conflicts = createCounts(CONFLICT_RETRY);
  const delayed = createDelayedKeys(clock, key => enqueue(key, orderOf(key)));
  const drained = Promise.withResolvers<void>();
  let shuttingDown = false;
  const depth = () => line.size() + again.size;
  const meter = createMeter(clock, options.metrics, depth);

  function enqueue(key: string, order: Order): void {
    if (shuttingDown) return;
    if (processing.has(key)) {
      if (!again.has(key)) meter.added(key);
      again.set(key, firstOf(order, again.get(key)));
    } else if (line.add(key, order)) {
      meter.added(key);
      line.hand();
    }
  }

  function addAfter(key: string, delayMs: number): void {
    if (shuttingDown) return;
    options.metrics?.retried();
    if (delayMs <= 0) return enqueue(key, orderOf(key));
    delayed.add(key, delayMs);
  }

  function done(key: string): void {
    if (!processing.delete(key)) return;
    meter.finished(key);
    waiting.done(key);
    if (shuttingDown && processing.size === 0) drained.resolve();
    const order = again.get(key);
    if (order === undefined) return;
    again.delete(key);
    line.add(key, order);
    line.hand();
  }

  function shutDown(): Promise<void> {
    shuttingDown = true;
    delayed.clear();
    again.clear();
    line.close();
    meter.close();
    if (processing.size === 0) drained.resolve();
    return drained.promise;
  }

  return {
    add: key => enqueue(key, orderOf(key)),
    addInBackground: key => enqueue(key, 'background'),
    addAfter,
    addRateLimited: key => addAfter(key, failures.add(key)),
    addAfterConflict: key => addAfter(key, conflicts.add(key)),
    forget: key => {
      failures.forget(key);
      conflicts.forget(key);
    },
    numRequeues: failures.of,
    get: () => line.get(),
    done,
    isPending: key => line.has(key) || processing.has(key) || failures.of(key) + conflicts.of(key) > 0,
    depth,
    shutDown,
  };
}
