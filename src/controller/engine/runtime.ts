import type { Reflector } from '../../kube/reflector.ts';
import { collectionPath } from '../../kube/resource.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Backoff, backoffMs } from '../../time/backoff.ts';
import { aborted, type Clock, sleep } from '../../time/clock.ts';
import type { Elector, Term } from './elector.ts';
import type { Controller } from './keyed-controller.ts';

/** State reported by the readiness probe. */
type Readiness = {
  /** True if all caches have synced. Replicas other than the leader can be ready too. */
  readonly ready: boolean;
  /** The paths of all kinds whose caches have not synced yet. */
  readonly missing: readonly string[];
  readonly leading: boolean;
  /**
   * The time since the least active cache has received data from the API server, in milliseconds. Undefined if at least
   * one cache has not received any data yet.
   */
  readonly silentMs: number | undefined;
};

export type RuntimeOptions = {
  readonly reflectors: readonly Omit<Reflector<unknown>, 'store' | 'subscribe'>[];
  readonly controllers: readonly Controller[];
  readonly elector: Pick<Elector, 'run' | 'isLeader'>;
  /** Called at the start of each term. */
  readonly onStartedLeading?: () => void;
  /**
   * Prepares a new term once the caches have been refreshed, e.g. by claiming the fencing epoch. Retried on failure.
   * The controllers will be started when it succeeds, or after 10 seconds. It should return soon after `over` has been
   * aborted.
   */
  readonly prepare?: (term: Term, over: AbortSignal) => Promise<void>;
  /** Called with the last error if `prepare` has been failing for one minute, before releasing the lease. */
  readonly onGivenUp?: (error: unknown) => void;
  /** Called before the process exits, e.g. to send any remaining Events. We only wait for it for two seconds. */
  readonly finish?: () => Promise<void>;
  /**
   * The time to wait for running reconciles when stopping. Defaults to 15 seconds, so the lease can be released before
   * the process is killed.
   */
  readonly drainMs?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
};

export type Runtime = {
  /**
   * Runs the controllers until `stop` is aborted. After that, waits for all reconciliations in progress and releases
   * the lease.
   */
  readonly run: (stop: AbortSignal) => Promise<void>;
  readonly readiness: () => Readiness;
  /** Returns the paths of all kinds whose caches were filled, but have not received any data for three minutes. */
  readonly outdated: () => readonly string[];
};

/** The API server sends a bookmark about once per minute, and a watch without any data for 90 seconds is restarted. */
const MUST_HEAR_WITHIN_MS = 180_000;
const PREPARE_BACKOFF: Backoff = { firstMs: 200, mostMs: 5_000 };
/**
 * The time that the controllers wait for `prepare`. Even if `prepare` doesn't succeed, some work is still possible,
 * such as removing finalizers.
 */
const START_WITHIN_MS = 10_000;
/**
 * The time for which `prepare` can fail before the leader releases the lease, so that another replica can try to
 * connect.
 */
const GIVE_UP_AFTER_MS = 60_000;
/** If the API server does not respond, sending all Events would take longer than the process may take to stop. */
const FINISH_WITHIN_MS = 2_000;

async function finishSoon({ finish, clock }: Pick<RuntimeOptions, 'finish' | 'clock'>): Promise<void> {
  const finished = new AbortController();
  await Promise.race([finish?.(), sleep(clock, FINISH_WITHIN_MS, finished.signal)]);
  finished.abort();
}

function outdatedOf({ reflectors, clock }: Pick<RuntimeOptions, 'reflectors' | 'clock'>): string[] {
  const now = clock.nowMs();
  return reflectors
    .filter(({ lastHeardMs }) => now - (lastHeardMs() ?? now) > MUST_HEAR_WITHIN_MS)
    .map(({ resource }) => collectionPath(resource));
}

function readinessOf({ reflectors, elector, clock }: RuntimeOptions): Readiness {
  const missing = reflectors.filter(({ hasSynced }) => !hasSynced());
  const heard = reflectors.flatMap(({ lastHeardMs }) => lastHeardMs() ?? []);
  return {
    ready: missing.length === 0,
    missing: missing.map(({ resource }) => collectionPath(resource)),
    leading: elector.isLeader(),
    silentMs: heard.length < reflectors.length ? undefined : clock.nowMs() - Math.min(...heard),
  };
}

/**
 * Creates the runtime for the controller role. All replicas keep their caches up to date, so a new leader does not have
 * to fill them first. However, only the leader will run the controllers.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { reflectors, controllers, elector, clock, log, random = Math.random, drainMs = 15_000 } = options;

  /** Calls `prepare` until it is successful. @throws the last error if it has been failing for too long */
  async function prepare(term: Term, over: AbortSignal): Promise<void> {
    const beganMs = clock.nowMs();
    for (let failures = 1; !over.aborted; failures++) {
      try {
        return await options.prepare?.(term, over);
      } catch (err) {
        if (over.aborted) return;
        log.warn({ err }, 'failed to start the term, retrying');
        if (clock.nowMs() - beganMs >= GIVE_UP_AFTER_MS) throw err;
        await sleep(clock, backoffMs(PREPARE_BACKOFF, failures, random), over);
      }
    }
  }

  async function lead(term: Term, stop: AbortSignal, abandoned: AbortSignal): Promise<void> {
    const over = AbortSignal.any([stop, term.signal]);
    // The cache might still be missing the previous leader's last writes, so list everything from the quorum.
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
      // Wait for the caches, as a leader without synced caches wouldn't be able to do anything.
      await Promise.race([Promise.all(reflectors.map(({ synced }) => synced)), aborted(stop)]);
      const onStartedLeading = (term: Term) => {
        options.onStartedLeading?.();
        return lead(term, stop, abandoned.signal);
      };
      await elector.run(stop, { onStartedLeading });
      cancelDrain();
      mirroring.abort();
      await Promise.all(mirrors);
      await finishSoon(options);
    },
    outdated: () => outdatedOf(options),
    readiness: () => readinessOf(options),
  };
}
