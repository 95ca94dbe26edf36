import { setImmediate as nextTurn } from 'node:timers/promises';
import { isKubeError, isStale } from '../../kube/kube-error.ts';
import type { Reflector } from '../../kube/reflector.ts';
import { createLimitedLog } from '../../telemetry/limited-log.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Span, Tracing } from '../../telemetry/tracing.ts';
import type { Backoff } from '../../time/backoff.ts';
import { aborted, type Clock } from '../../time/clock.ts';
import { inSlices, type Steps } from '../../time/slices.ts';
import type { ControllerMetrics, ReconcileResult } from './controller-metrics.ts';
import { createWorkQueue, type WorkQueue } from './work-queue.ts';

/** Thousands of objects fail at the same time while Redis is unavailable. */
const FAILURE_LINES = { lines: 20, periodMs: 10_000 };
/** A missing permission affects all objects of a kind in the same way, until someone grants it. */
const FORBIDDEN_LINES = { lines: 5, periodMs: 60_000 };

export type Attempt = {
  /** The number of consecutive failures for this key. */
  readonly failures: number;
  /** Aborted when the lease is lost. From then on, a running reconcile must not write anything. */
  readonly signal: AbortSignal;
  readonly log: Logger;
};

/** A source of keys: a reflector and a function which maps its changes to the controller keys. */
export type KeySource = {
  readonly reflector: Pick<Reflector<unknown>, 'hasSynced' | 'synced' | 'resource'>;
  /** Calls `add` with the keys of each change. Returns a function to unsubscribe. */
  readonly subscribe: (add: (key: string) => void) => () => void;
  /** Returns the keys of all existing objects. */
  readonly keys: () => Iterable<string>;
};

/** The maximum number of keys that all controllers process in a single turn of the event loop. */
const KEYS_PER_TURN = 256;

/** The number of keys that are added immediately. */
const AT_ONCE = 100;

/** Adds the first keys immediately, and all others in slices, because there may be 100,000 of them. */
async function addSoon(keys: Iterable<string>, add: (key: string) => void): Promise<void> {
  const steps = (function* (): Steps<void> {
    for (const key of keys) {
      add(key);
      yield;
    }
  })();
  for (let n = 0; n < AT_ONCE; n++) if (steps.next().done) return;
  await inSlices(steps);
}

/** Returns the keys of all existing objects. */
function* existing(sources: readonly KeySource[], stop: AbortSignal): Generator<string> {
  for (const source of sources) {
    for (const key of source.keys()) {
      if (stop.aborted) return;
      yield key;
    }
  }
}

function* unique(keys: Iterable<string>): Generator<string, void, undefined> {
  const seen = new Set<string>();
  for (const key of keys) {
    if (seen.has(key)) continue;
    seen.add(key);
    yield key;
  }
}

/**
 * Adds each key once. A second call would reconcile it twice if a worker has already started on it. If the keys come
 * from a generator, each of them is only determined when it is needed.
 */
export function addChanged(keys: Iterable<string>, add: (key: string) => void): void {
  void addSoon(unique(keys), add);
}

/**
 * Creates a source that maps reflector changes to keys. `toKeys` receives both the old and the new object so that both
 * are enqueued when a reference changes. It should be fast and free of side effects.
 */
export function keysFrom<P>(
  reflector: Reflector<P>,
  toKeys: (old: P | undefined, current: P | undefined) => Iterable<string>,
): KeySource {
  return {
    reflector,
    subscribe: add => reflector.subscribe((_change, _key, old, current) => addChanged(toKeys(old, current), add)),
    keys: function* () {
      for (const value of reflector.store.values()) yield* toKeys(undefined, value);
    },
  };
}

/** The same as `keysFrom`, for objects whose keys another source already has at the start. */
export function changedKeysFrom<P>(...args: Parameters<typeof keysFrom<P>>): KeySource {
  return { ...keysFrom(...args), keys: () => [] };
}

export type KeyedControllerOptions = {
  /** The controller name, which is used in logs and metrics. */
  readonly name: string;
  /**
   * Reconciles the given key. Never called concurrently for the same key and should not depend on why the key was
   * enqueued.
   */
  readonly reconcile: (
    key: string,
    attempt: Attempt,
  ) => Promise<{ readonly requeueAfterMs?: number | undefined } | undefined | void>;
  /**
   * Called before each reconciliation. Rejects if the caches are not recent enough to determine whether this
   * installation is responsible for the key. The key is then retried.
   */
  readonly confirm?: ((key: string) => Promise<void>) | undefined;
  readonly sources?: readonly KeySource[];
  /** Returns additional keys to enqueue when the controller starts, e.g. keys that only exist in Redis. */
  readonly keys?: () => Iterable<string> | Promise<Iterable<string>>;
  /** Returns true if the key is currently used for a deletion. Deletions are reconciled first. Defaults to no. */
  readonly isDeletion?: ((key: string) => boolean) | undefined;
  /** The number of keys that can be reconciled concurrently. The default is 1. */
  readonly workers?: number | undefined;
  readonly retry?: Backoff | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  /** Optional. Reconciles will not be traced unless this is set. */
  readonly tracing?: Tracing | undefined;
};

export type Controller = {
  readonly name: string;
  readonly sources: readonly KeySource[];
  /**
   * Adds a key to the queue. Does nothing unless this replica is the leader, because a new leader enqueues all keys
   * anyway.
   */
  readonly enqueue: (key: string, order?: 'change' | 'background') => void;
  readonly enqueueAfter: (key: string, delayMs: number) => void;
  /** Returns true if the key is waiting, is being reconciled, or will be retried after a failure or a conflict. */
  readonly isPending: (key: string) => boolean;
  /**
   * Runs the controller until `stop` is aborted and all reconciliations in progress have finished.
   *
   * @param lost passed to each reconcile, and aborted when the lease is lost
   */
  readonly run: (stop: AbortSignal, lost: AbortSignal) => Promise<void>;
};

function createFailureLog({ nowMs }: Clock) {
  const logFailure = createLimitedLog({ ...FAILURE_LINES, nowMs });
  const message = 'failed to reconcile, retrying';
  const logForbidden = createLimitedLog({ ...FORBIDDEN_LINES, nowMs });
  return (log: Logger, err: unknown, key: string): void => {
    if (isKubeError(err, 403)) logForbidden(log, 'warn', { detail: err.message, key }, message);
    else logFailure(log, 'warn', { err, key }, message);
  };
}

/**
 * Creates a function that all workers call after each key. A reconciliation that has nothing to write does not wait for
 * anything else.
 */
function createPauses(): () => Promise<void> {
  let turn: { readonly over: Promise<void>; keys: number } | undefined;
  return async () => {
    turn ??= {
      over: nextTurn().then(() => {
        turn = undefined;
      }),
      keys: 0,
    };
    if (++turn.keys >= KEYS_PER_TURN) await turn.over;
  };
}

/** All controllers take turns, because they share an event loop. */
const letOthersRun = createPauses();

/**
 * Creates a controller that reconciles keys. Failed reconciliations are retried. A key can be any string, such as
 * `acme/orders`. Each key is only processed by a single worker at a time. The part before the first slash is the
 * tenant, which is used for taking turns.
 */
export function createKeyedController(options: KeyedControllerOptions): Controller {
  const { name, clock, metrics, sources = [], workers = 1, retry, isDeletion } = options;
  const base = options.log.child({ controller: name });
  const logFailure = createFailureLog(clock);
  let queue: WorkQueue | undefined;

  /** Reconciles a key a single time. If requested by the result, the key is enqueued again. */
  async function workOn(
    key: string,
    current: WorkQueue,
    lost: AbortSignal,
    span: Span | undefined,
  ): Promise<ReconcileResult> {
    const log = span === undefined ? base : base.child({ traceId: span.traceId });
    try {
      const failures = current.numRequeues(key);
      await options.confirm?.(key);
      const answer = await options.reconcile(key, { failures, signal: lost, log });
      current.forget(key);
      if (answer?.requeueAfterMs === undefined) return 'success';
      current.addAfter(key, Math.max(1, answer.requeueAfterMs));
      return 'requeue_after';
    } catch (err) {
      if (lost.aborted) return 'requeue';
      if (isStale(err)) {
        // The cache was simply out of date, so this doesn't count as a failure. The retry will use the newer object.
        log.debug({ err, key }, 'retrying: the object has changed since it was read');
        current.addAfterConflict(key);
        return 'requeue';
      }
      metrics.failed();
      current.addRateLimited(key);
      logFailure(log, err, key);
      return 'error';
    }
  }

  async function work(current: WorkQueue, lost: AbortSignal): Promise<void> {
    for (let key = await current.get(); key !== undefined; key = await current.get()) {
      const beganMs = clock.nowMs();
      metrics.addActiveWorkers(1);
      const span = options.tracing?.start(`reconcile ${name}`, { kind: 'internal' });
      const result = await workOn(key, current, lost, span);
      span?.end({ attributes: { 'sluice.result': result }, error: result === 'error' ? 'reconcile' : undefined });
      metrics.addActiveWorkers(-1);
      metrics.reconciled(result, (clock.nowMs() - beganMs) / 1_000);
      current.done(key);
      await letOthersRun();
    }
  }

  async function run(stop: AbortSignal, lost: AbortSignal): Promise<void> {
    if (stop.aborted) return;
    const current = createWorkQueue({ clock, metrics: metrics.queue, retry, isDeletion, workers });
    queue = current;
    metrics.setMaxConcurrent(workers);
    const subscriptions = sources.map(source => source.subscribe(current.add));
    const stopped = aborted(stop);
    const running = Array.from({ length: workers }, () => work(current, lost));
    await addSoon(existing(sources, stop), current.addInBackground);
    for (const key of (await options.keys?.()) ?? []) current.addInBackground(key);
    await stopped;
    for (const unsubscribe of subscriptions) unsubscribe();
    queue = undefined;
    await current.shutDown();
    await Promise.all(running);
  }

  return {
    name,
    sources,
    enqueue: (key, order = 'change') => (order === 'change' ? queue?.add(key) : queue?.addInBackground(key)),
    enqueueAfter: (key, delayMs) => queue?.addAfter(key, delayMs),
    isPending: key => queue?.isPending(key) ?? false,
    run,
  };
}
