import { isStale } from '../../kube/kube-error.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Span, Tracing } from '../../telemetry/tracing.ts';
import type { Backoff } from '../../time/backoff.ts';
import type { Clock } from '../../time/clock.ts';
import type { ControllerMetrics, ReconcileResult } from './controller-metrics.ts';
import { createWorkQueue, type WorkQueue } from './work-queue.ts';

export type Attempt = {
  /** Number of failures of this key in a row. */
  readonly failures: number;
  /** Aborts when the lease is lost: running reconciles must not write any more. */
  readonly signal: AbortSignal;
  readonly log: Logger;
};

/** A source of keys: a reflector, and the mapping of its changes to keys of a controller. */
export type KeySource = {
  readonly reflector: Pick<Reflector<unknown>, 'hasSynced' | 'synced' | 'resource'>;
  /** Calls `add` with the keys of every change, until the returned function is called. */
  readonly subscribe: (add: (key: string) => void) => () => void;
  /** Returns the keys of all objects that exist now. */
  readonly keys: () => Iterable<string>;
};

/**
 * Maps a reflector's changes to keys. `toKeys` gets the old and the current object, so a changed reference enqueues both
 * sides. It must be pure and fast.
 */
export function keysFrom<P>(
  reflector: Reflector<P>,
  toKeys: (old: P | undefined, current: P | undefined) => Iterable<string>,
): KeySource {
  return {
    reflector,
    subscribe: add =>
      reflector.subscribe((_change, _key, old, current) => {
        // Add each key once: a worker may take it at once, and a second add would reconcile it again.
        for (const key of new Set(toKeys(old, current))) add(key);
      }),
    keys: function* () {
      for (const value of reflector.store.values()) yield* toKeys(undefined, value);
    },
  };
}

export type KeyedControllerOptions = {
  /** Name in logs and metrics. */
  readonly name: string;
  /** Reconciles the key. Never runs twice at once for one key. Must not depend on why it runs. */
  readonly reconcile: (
    key: string,
    attempt: Attempt,
  ) => Promise<{ readonly requeueAfterMs?: number | undefined } | undefined | void>;
  readonly sources?: readonly KeySource[];
  /** Additional keys at the start that no source has, e.g. those that only Redis has. */
  readonly keys?: () => Iterable<string> | Promise<Iterable<string>>;
  /** Number of keys reconciled at once. Default 1. */
  readonly workers?: number | undefined;
  readonly retry?: Backoff | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  /** Undefined: reconciliations are not traced. */
  readonly tracing?: Tracing | undefined;
};

export type Controller = {
  readonly name: string;
  readonly sources: readonly KeySource[];
  /** Enqueues a key. No effect while this replica does not lead, because a start enqueues every key. */
  readonly enqueue: (key: string, order?: 'first' | 'background') => void;
  readonly enqueueAfter: (key: string, delayMs: number) => void;
  /** Returns whether the key waits, is being reconciled, or is to be retried after a failure. */
  readonly isPending: (key: string) => boolean;
  /**
   * Runs until `stop` aborts and running reconciles are done.
   *
   * @param lost aborts when the lease is lost; passed to each reconcile
   */
  readonly run: (stop: AbortSignal, lost: AbortSignal) => Promise<void>;
};

/** Reconciles keys with retries, each key by one worker at a time. A key is any string, such as `tenant/acme`. */
export function createKeyedController(options: KeyedControllerOptions): Controller {
  const { name, clock, metrics, sources = [], workers = 1 } = options;
  const base = options.log.child({ controller: name });
  let queue: WorkQueue | undefined;

  /** Reconciles a key once and requeues it by the result. */
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
        // The cache was behind: not a failure. The retry sees the newer object.
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
