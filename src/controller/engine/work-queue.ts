import { type Backoff, backoffMs } from '../../time/backoff.ts';
import type { Clock } from '../../time/clock.ts';
import { createDelayHeap } from './delay-heap.ts';
import type { QueueMetrics } from './queue-metrics.ts';

/** Pauses of a failing key, without jitter, as client-go has them. */
const RETRY: Backoff = { firstMs: 5, mostMs: 1_000_000 };

/** A queue of keys with the semantics of client-go's rate-limiting work queue. */
export type WorkQueue = {
  /** Adds a key. A waiting key is not added twice; one that is being processed is processed again afterwards. */
  readonly add: (key: string) => void;
  /** As `add`, but after all other keys: a start or an audit must not delay current changes. */
  readonly addInBackground: (key: string) => void;
  readonly addAfter: (key: string, delayMs: number) => void;
  /** Adds the key after the backoff of its failures so far, and counts one more. */
  readonly addRateLimited: (key: string) => void;
  /** Forgets the failures of a key. */
  readonly forget: (key: string) => void;
  readonly numRequeues: (key: string) => number;
  /** Waits for and returns the next key. Undefined: the queue is shut down. Call `done` with each key. */
  readonly get: () => Promise<string | undefined>;
  readonly done: (key: string) => void;
  /** Returns whether the key waits, is being processed, or is to be retried after a failure. */
  readonly isPending: (key: string) => boolean;
  /** Number of waiting keys, without delayed ones. */
  readonly depth: () => number;
  /** Drops waiting keys and accepts no new ones. Resolves when all keys in progress are done. */
  readonly shutDown: () => Promise<void>;
};

type Order = 'first' | 'background';

/** Creates a FIFO with removal. A live Set iterator visits each element once, also those that are added meanwhile. */
function createFifo() {
  const keys = new Set<string>();
  let cursor = keys.values();
  return {
    has: (key: string) => keys.has(key),
    add: (key: string) => keys.add(key),
    delete: (key: string) => keys.delete(key),
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

export function createWorkQueue(options: {
  clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  metrics?: QueueMetrics;
  retry?: Backoff | undefined;
}): WorkQueue {
  const { clock, metrics, retry = RETRY } = options;
  const waiting = { first: createFifo(), background: createFifo() };
  const addedMs = new Map<string, number>();
  /** key → when its work began */
  const processing = new Map<string, number>();
  /** Keys that were added while in progress: client-go's dirty keys that are also processing. */
  const again = new Map<string, Order>();
  const failures = new Map<string, number>();
  const delayed = createDelayHeap();
  const getters: ((key: string | undefined) => void)[] = [];
  const drained = Promise.withResolvers<void>();
  let shuttingDown = false;
  let cancelTimer = () => {};
  let timerAtMs = Number.POSITIVE_INFINITY;

  metrics?.observe(() => {
    const nowMs = clock.nowMs();
    const runningMs = [...processing.values()].map(beganMs => nowMs - beganMs);
    return {
      depth: depth(),
      unfinishedSeconds: runningMs.reduce((sum, ms) => sum + ms, 0) / 1_000,
      longestSeconds: Math.max(0, ...runningMs) / 1_000,
    };
  });

  const depth = () => waiting.first.size() + waiting.background.size() + again.size;

  function enqueue(key: string, order: Order): void {
    if (shuttingDown) return;
    if (processing.has(key)) {
      if (!again.has(key)) count(key);
      if (order === 'first' || !again.has(key)) again.set(key, order);
      return;
    }
    if (waiting.first.has(key)) return;
    if (waiting.background.has(key)) {
      if (order === 'first') {
        waiting.background.delete(key);
        waiting.first.add(key);
      }
      return;
    }
    count(key);
    waiting[order].add(key);
    hand();
  }

  function count(key: string): void {
    metrics?.added();
    addedMs.set(key, clock.nowMs());
  }

  /** Hands waiting keys to waiting workers. */
  function hand(): void {
    while (getters.length > 0) {
      const key = waiting.first.take() ?? waiting.background.take();
      if (key === undefined) return;
      const nowMs = clock.nowMs();
      processing.set(key, nowMs);
      metrics?.taken((nowMs - (addedMs.get(key) ?? nowMs)) / 1_000);
      addedMs.delete(key);
      getters.shift()?.(key);
    }
  }

  function addAfter(key: string, delayMs: number): void {
    if (shuttingDown) return;
    if (delayMs <= 0) return enqueue(key, 'first');
    delayed.add(key, clock.nowMs() + delayMs);
    arm();
  }

  function arm(): void {
    const nextMs = delayed.nextMs();
    if (nextMs === undefined || nextMs >= timerAtMs) return;
    cancelTimer();
    timerAtMs = nextMs;
    cancelTimer = clock.setTimer(ripen, nextMs - clock.nowMs());
  }

  function ripen(): void {
    timerAtMs = Number.POSITIVE_INFINITY;
    const nowMs = clock.nowMs();
    for (let key = delayed.take(nowMs); key !== undefined; key = delayed.take(nowMs)) enqueue(key, 'first');
    arm();
  }

  return {
    add: key => enqueue(key, 'first'),
    addInBackground: key => enqueue(key, 'background'),
    addAfter: (key, delayMs) => {
      if (!shuttingDown) metrics?.retried();
      addAfter(key, delayMs);
    },
    addRateLimited: key => {
      if (shuttingDown) return;
      const times = (failures.get(key) ?? 0) + 1;
      failures.set(key, times);
      metrics?.retried();
      addAfter(key, backoffMs(retry, times));
    },
    forget: key => failures.delete(key),
    numRequeues: key => failures.get(key) ?? 0,
    get: () => {
      if (shuttingDown) return Promise.resolve(undefined);
      return new Promise(resolve => {
        getters.push(resolve);
        hand();
      });
    },
    done: key => {
      const beganMs = processing.get(key);
      if (beganMs === undefined) return;
      processing.delete(key);
      metrics?.finished((clock.nowMs() - beganMs) / 1_000);
      const order = again.get(key);
      again.delete(key);
      if (shuttingDown) {
        if (processing.size === 0) drained.resolve();
        return;
      }
      if (order === undefined) return;
      waiting[order].add(key);
      hand();
    },
    isPending: key => waiting.first.has(key) || waiting.background.has(key) || processing.has(key) || failures.has(key),
    depth,
    shutDown: () => {
      if (!shuttingDown) {
        shuttingDown = true;
        cancelTimer();
        delayed.clear();
        again.clear();
        addedMs.clear();
        waiting.first = createFifo();
        waiting.background = createFifo();
        for (const resolve of getters.splice(0)) resolve(undefined);
        metrics?.close();
        if (processing.size === 0) drained.resolve();
      }
      return drained.promise;
    },
  };
}
