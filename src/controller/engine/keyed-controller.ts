import { isStale } from '../../kube/kube-error.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Span, Tracing } from '../../telemetry/tracing.ts';
import type { Backoff } from '../../time/backoff.ts';
import type { Clock } from '../../time/clock.ts';
import type { ControllerMetrics, ReconcileResult } from './controller-metrics.ts';
import { createWorkQueue, type WorkQueue } from './work-queue.ts';

export type Attempt = {
  /** The number of consecutive failures of this key. */
  readonly failures: number;
  /** This signal is aborted when the lease is lost. After that, a running reconcile must not write anything. */
  readonly signal: AbortSignal;
  readonly log: Logger;
};

/** A source of keys. It consists of a reflector and a function that maps its changes to the keys of a controller. */
export type KeySource = {
  readonly reflector: Pick<Reflector<unknown>, 'hasSynced' | 'synced' | 'resource'>;
  /** Calls `add` with the keys of each change. Call the returned function to unsubscribe. */
  readonly subscribe: (add: (key: string) => void) => () => void;
  /** Returns the keys of all objects that currently exist. */
  readonly keys: () => Iterable<string>;
};

/**
 * Creates a source that maps the changes of a reflector to keys. `toKeys` is called with the old and the new object, so
 * that both are enqueued if a reference changes. It must be fast and must not have side effects.
 */
export function keysFrom<P>(
  reflector: Reflector<P>,
  toKeys: (old: P | undefined, current: P | undefined) => Iterable<string>,
): KeySource {
  return {
    reflector,
    subscribe: add =>
      reflector.subscribe((_change, _key, old, current) => {
        // Each key is only added once. A worker may already have started on the key, in which case a second call would
        // reconcile it twice.
        for (const key of new Set(toKeys(old, current))) add(key);
      }),
    keys: function* () {
      for (const value of reflector.store.values()) yield* toKeys(undefined, value);
    },
  };
}

export type KeyedControllerOptions = {
  /** The name of the controller, used in logs and metrics. */
  readonly name: string;
  /**
   * Reconciles the given key. It is not called concurrently for the same key. It must not depend on the reason why the
   * key was enqueued.
   */
  readonly reconcile: (
    key: string,
    attempt: Attempt,
  ) => Promise<{ readonly requeueAfterMs?: number | undefined } | undefined | void>;
  readonly sources?: readonly KeySource[];
  /**
   * Returns additional keys that are enqueued when the controller starts, for example keys that only exist in Redis.
   */
  readonly keys?: () => Iterable<string> | Promise<Iterable<string>>;
  /** The number of keys that can be reconciled concurrently. Defaults to 1. */
  readonly workers?: number | undefined;
  readonly retry?: Backoff | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  /** If this is not set, reconciles are not traced. */
  readonly tracing?: Tracing | undefined;
};

export type Controller = {
  readonly name: string;
  readonly sources: readonly KeySource[];
  /**
   * Enqueues a key. This has no effect if this replica is not the leader, because all keys are enqueued when it becomes
   * the leader.
   */
  readonly enqueue: (key: string, order?: 'first' | 'background') => void;
  readonly enqueueAfter: (key: string, delayMs: number) => void;
  /** Returns true if the key is waiting, is being reconciled, or will be retried after a failure. */
  readonly isPending: (key: string) => boolean;
  /**
   * Runs the controller until `stop` is aborted and all running reconciles have finished.
   *
   * @param lost this signal is passed to each reconcile and is aborted when the lease is lost
   */
  readonly run: (stop: AbortSignal, lost: AbortSignal) => Promise<void>;
};

/**
 * Creates a controller that reconciles keys and retries failures. Each key is processed by one worker at a time. A key
 * can be any string, for example `tenant/acme`.
 */
export function createKeyedController(options: KeyedControllerOptions): Controller {
  const { name, clock, metrics, sources = [], workers = 1 } = options;
  const base = options.log.child({ controller: name });
  let queue: WorkQueue | undefined;

  /** Reconciles a key once, and then enqueues it again if the result requires it. */
  async function workOn(
    key: string,
    current: WorkQueue,
    lost: AbortSignal,
    span: Span | undefined,
  ): Promise<ReconcileResult> {
    const log = span === undefined ? base : base.child({ traceId: span.traceId });
    try {
      const failures = current.numRequeues(key);
      const answer = await options.reconcile(key, { failures, signal: lost, log });
      current.forget(key);
      if (answer?.requeueAfterMs === undefined) return 'success';
      current.addAfter(key, Math.max(1, answer.requeueAfterMs));
      return 'requeue_after';
    } catch (err) {
      if (lost.aborted) return 'requeue';
      if (isStale(err)) {
        // This is not a failure, because the cache was out of date. The newer object is used when the key is retried.
        log.debug({ err, key }, 'retrying: the object has changed since it was read');
        current.addRateLimited(key);
        return 'requeue';
      }
      metrics.failed();
      current.addRateLimited(key);
      log.warn({ err, key }, 'cannot reconcile; retrying');
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
    }
  }

  async function run(stop: AbortSignal, lost: AbortSignal): Promise<void> {
    if (stop.aborted) return;
    const current = createWorkQueue({ clock, metrics: metrics.queue, retry: options.retry });
    queue = current;
    metrics.setMaxConcurrent(workers);
    const subscriptions = sources.map(source => source.subscribe(current.add));
    const stopped = new Promise<void>(resolve => stop.addEventListener('abort', () => resolve(), { once: true }));
    for (const source of sources) for (const key of source.keys()) current.addInBackground(key);
    const running = Array.from({ length: workers }, () => work(current, lost));
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
    enqueue: (key, order = 'first') => (order === 'first' ? queue?.add(key) : queue?.addInBackground(key)),
    enqueueAfter: (key, delayMs) => queue?.addAfter(key, delayMs),
    isPending: key => queue?.isPending(key) ?? false,
    run,
  };
}
