import type { Reflector } from '../../kube/reflector.ts';
import { collectionPath } from '../../kube/resource.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Backoff, backoffMs } from '../../time/backoff.ts';
import { aborted, type Clock, sleep } from '../../time/clock.ts';
import type { Elector, Term } from './elector.ts';
import type { Controller } from './keyed-controller.ts';

/** State for a readiness probe. */
type Readiness = {
  /** Every cache has synced. A replica that does not lead is ready, too. */
  readonly ready: boolean;
  /** Paths of the kinds whose cache has not synced. */
  readonly missing: readonly string[];
  readonly leading: boolean;
  /** Longest time since a cache heard from the API server, ms; undefined before all have. */
  readonly silentMs: number | undefined;
};

export type RuntimeOptions = {
  readonly reflectors: readonly Omit<Reflector<unknown>, 'store' | 'subscribe'>[];
  readonly controllers: readonly Controller[];
  readonly elector: Pick<Elector, 'run' | 'isLeader'>;
  /**
   * Begins each term with a fresh cache, e.g. claims the fencing epoch. Retried when it throws. The controllers start
   * after it succeeded, or after 10 s. Must end soon after `over` has aborted.
   */
  readonly prepare?: (term: Term, over: AbortSignal) => Promise<void>;
  /** Called with the error when the lease is released because `prepare` has failed for a minute. */
  readonly onGivenUp?: (error: unknown) => void;
  /** Runs at the end, e.g. to flush Events. */
  readonly finish?: () => Promise<void>;
  /** How long a stop waits for running reconciles. Default 15 s: releases the lease before the process is killed. */
  readonly drainMs?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
};

export type Runtime = {
  /** Runs until `stop` aborts. Then starts nothing new, waits for running reconciles, and releases the lease. */
  readonly run: (stop: AbortSignal) => Promise<void>;
  readonly readiness: () => Readiness;
};

const PREPARE_BACKOFF: Backoff = { firstMs: 200, mostMs: 5_000 };
/** How long controllers wait for `prepare`. Without it they can still do some work, e.g. remove finalizers. */
const START_WITHIN_MS = 10_000;
/** How long `prepare` may fail before the leader releases the lease. Another replica may have a connection. */
const GIVE_UP_AFTER_MS = 60_000;

/**
 * Creates the runtime of the controller role. Every replica keeps its caches filled, so that a new leader starts warm.
 * Controllers run only on the leader.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { reflectors, controllers, elector, clock, log, random = Math.random, drainMs = 15_000 } = options;

  /** Prepares with retries. @throws the last error, when it has failed for too long */
  async function prepare(term: Term, over: AbortSignal): Promise<void> {
    const beganMs = clock.nowMs();
    for (let failures = 1; !over.aborted; failures++) {
      try {
        return await options.prepare?.(term, over);
      } catch (err) {
        if (over.aborted) return;
        log.warn({ err }, 'cannot start the term yet; retrying');
        if (clock.nowMs() - beganMs >= GIVE_UP_AFTER_MS) throw err;
        await sleep(clock, backoffMs(PREPARE_BACKOFF, failures, random), over);
      }
    }
  }

  async function lead(term: Term, stop: AbortSignal, abandoned: AbortSignal): Promise<void> {
    const over = AbortSignal.any([stop, term.signal]);
    // The last writes of the former leader may not be in the cache yet. A list from the quorum has them.
    await Promise.race([Promise.all(reflectors.map(({ relist }) => relist())), aborted(over)]);
    if (over.aborted) return;
    const prepared = new AbortController();
    const gaveUp = new AbortController();
    void prepare(term, over).then(
      () => prepared.abort(),
      error => {
        options.onGivenUp?.(error);
        gaveUp.abort(error);
      },
    );
    await sleep(clock, START_WITHIN_MS, AbortSignal.any([over, prepared.signal, gaveUp.signal]));
    if (over.aborted) return;
    if (!prepared.signal.aborted) log.warn('starting the controllers before the term is prepared');
    const end = AbortSignal.any([over, gaveUp.signal]);
    const lost = AbortSignal.any([term.signal, abandoned]);
    log.info({ controllers: controllers.map(({ name }) => name) }, 'starting the controllers');
    await Promise.race([Promise.all(controllers.map(({ run }) => run(end, lost))), aborted(abandoned)]);
    log.info('stopped the controllers');
    gaveUp.signal.throwIfAborted();
  }

  return {
    run: async stop => {
      const mirroring = new AbortController();
      const abandoned = new AbortController();
      const mirrors = reflectors.map(({ run }) => run(mirroring.signal));
      let cancelDrain = () => {};
      stop.addEventListener(
        'abort',
        () => {
          cancelDrain = clock.setTimer(() => abandoned.abort(new Error('draining took too long')), drainMs);
        },
        { once: true },
      );
      // A replica without synced caches could lead, but do nothing.
      await Promise.race([Promise.all(reflectors.map(({ synced }) => synced)), aborted(stop)]);
      await elector.run(stop, { onStartedLeading: term => lead(term, stop, abandoned.signal) });
      cancelDrain();
      mirroring.abort();
      await Promise.all(mirrors);
      await options.finish?.();
    },
    readiness: () => {
      const missing = reflectors.filter(({ hasSynced }) => !hasSynced());
      const heard = reflectors.flatMap(({ lastHeardMs }) => lastHeardMs() ?? []);
      return {
        ready: missing.length === 0,
        missing: missing.map(({ resource }) => collectionPath(resource)),
        leading: elector.isLeader(),
        silentMs: heard.length < reflectors.length ? undefined : clock.nowMs() - Math.min(...heard),
      };
    },
  };
}
