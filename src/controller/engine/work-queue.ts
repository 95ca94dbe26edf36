import { type Backoff, backoffMs } from '../../time/backoff.ts';
import type { Clock } from '../../time/clock.ts';
import { createDelayedKeys } from './delay-heap.ts';
import type { QueueMetrics } from './queue-metrics.ts';

/** The backoff for keys that fail. It does not have jitter, which is the same as in client-go. */
const RETRY: Backoff = { firstMs: 5, mostMs: 1_000_000 };

/** A queue of keys with the semantics of the rate limiting work queue in client-go. */
export type WorkQueue = {
  /**
   * Adds a key to the queue. A key that is already waiting is not added twice. If the key is being processed, it will
   * be processed again afterwards.
   */
  readonly add: (key: string) => void;
  /** Adds a key after all other keys. This is used by a start or an audit so that current changes are not delayed. */
  readonly addInBackground: (key: string) => void;
  readonly addAfter: (key: string, delayMs: number) => void;
  /** Adds a key after the backoff for its previous failures, and increments the number of failures. */
  readonly addRateLimited: (key: string) => void;
  /** Resets the number of failures of a key. */
  readonly forget: (key: string) => void;
  readonly numRequeues: (key: string) => number;
  /**
   * Waits for the next key and returns it. Returns undefined if the queue has been shut down. The caller must call
   * `done` for each key.
   */
  readonly get: () => Promise<string | undefined>;
  readonly done: (key: string) => void;
  /** Returns true if the key is waiting, is being processed, or will be retried after a failure. */
  readonly isPending: (key: string) => boolean;
  /** The number of keys that are waiting. Delayed keys are not included. */
  readonly depth: () => number;
  /** Drops all waiting keys and stops accepting new ones. Resolves when all keys in progress are done. */
  readonly shutDown: () => Promise<void>;
};

type Order = 'first' | 'background';

/**
 * Creates a FIFO queue that supports removal. It relies on the fact that a Set iterator also visits elements that are
 * added during the iteration.
 */
function createFifo() {
  const keys = new Set<string>();
  let cursor = keys.values();
  return {
    has: (key: string) => keys.has(key),
    add: (key: string) => keys.add(key),
    delete: (key: string) => keys.delete(key),
    clear: () => keys.clear(),
    size: () => keys.size,
    take: (): string | undefined => {
      if (keys.size === 0) return undefined;
      let next = cursor.next();
      if (next.done) {
        cursor = keys.values();
        next = cursor.next();
      }
      const key = next.value as string;
      keys.delete(key);
      return key;
    },
  };
}

/**
 * Creates a queue of waiting keys without duplicates. Background keys are returned after all other keys. Workers wait
 * in this queue for the next key.
 *
 * @param onTaken called before a key is passed to a worker
 */
function createLine(onTaken: (key: string) => void) {
  const first = createFifo();
  const background = createFifo();
  const workers: ((key: string | undefined) => void)[] = [];
  let closed = false;

  /** Passes waiting keys to waiting workers. */
  function hand(): void {
    while (workers.length > 0) {
      const key = first.take() ?? background.take();
      if (key === undefined) return;
      onTaken(key);
      workers.shift()?.(key);
    }
  }

  return {
    hand,
    has: (key: string) => first.has(key) || background.has(key),
    size: () => first.size() + background.size(),
    /** Adds a key or moves it forward. Returns true if the key was not waiting before. */
    add(key: string, order: Order): boolean {
      if (first.has(key)) return false;
      const waited = order === 'first' ? background.delete(key) : background.has(key);
      (order === 'first' ? first : background).add(key);
      return !waited;
    },
    get(): Promise<string | undefined> {
      if (closed) return Promise.resolve(undefined);
      return new Promise(resolve => {
        workers.push(resolve);
        hand();
      });
    },
    /** Drops all keys and stops all waiting workers. */
    close(): void {
      closed = true;
      first.clear();
      background.clear();
      for (const resolve of workers.splice(0)) resolve(undefined);
    },
  };
}

/** Records how long keys wait in the queue and how long they take to process. */
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

export function createWorkQueue(options: {
  clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  metrics?: QueueMetrics;
  retry?: Backoff | undefined;
}): WorkQueue {
  const { clock, retry = RETRY } = options;
  const line = createLine(key => {
    processing.add(key);
    meter.taken(key);
  });
  const processing = new Set<string>();
  /** The keys that were added again while they were being processed. In client-go, these are the dirty keys. */
  const again = new Map<string, Order>();
  const failures = new Map<string, number>();
  const delayed = createDelayedKeys(clock, key => enqueue(key, 'first'));
  const drained = Promise.withResolvers<void>();
  let shuttingDown = false;
  const depth = () => line.size() + again.size;
  const meter = createMeter(clock, options.metrics, depth);

  function enqueue(key: string, order: Order): void {
    if (shuttingDown) return;
    if (processing.has(key)) {
      if (!again.has(key)) meter.added(key);
      if (order === 'first' || !again.has(key)) again.set(key, order);
    } else if (line.add(key, order)) {
      meter.added(key);
      line.hand();
    }
  }

  function addAfter(key: string, delayMs: number): void {
    if (shuttingDown) return;
    options.metrics?.retried();
    if (delayMs <= 0) enqueue(key, 'first');
    else delayed.add(key, delayMs);
  }

  function done(key: string): void {
    if (!processing.delete(key)) return;
    meter.finished(key);
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
    add: key => enqueue(key, 'first'),
    addInBackground: key => enqueue(key, 'background'),
    addAfter,
    addRateLimited: key => {
      if (shuttingDown) return;
      const times = (failures.get(key) ?? 0) + 1;
      failures.set(key, times);
      addAfter(key, backoffMs(retry, times));
    },
    forget: key => failures.delete(key),
    numRequeues: key => failures.get(key) ?? 0,
    get: () => line.get(),
    done,
    isPending: key => line.has(key) || processing.has(key) || failures.has(key),
    depth,
    shutDown,
  };
}
