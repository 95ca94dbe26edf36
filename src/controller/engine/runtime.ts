import type { Reflector } from '../../kube/reflector.ts';
import { collectionPath } from '../../kube/resource.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Backoff, backoffMs } from '../../time/backoff.ts';
import { aborted, type Clock, sleep } from '../../time/clock.ts';
import type { Elector, Term } from './elector.ts';
import type { Controller } from './keyed-controller.ts';

/** What a readiness probe should know. */
export type Readiness = {
  /** Every cache has been filled once. A replica that does not lead is ready too. */
  readonly ready: boolean;
  /** Paths of the kinds whose cache is still empty. */
  readonly missing: readonly string[];
  readonly leading: boolean;
  /** Milliseconds since the most silent of the caches heard from the API server; undefined before all have. */
  readonly silentMs: number | undefined;
};

export type RuntimeOptions = {
  readonly reflectors: readonly Omit<Reflector<unknown>, 'store' | 'subscribe'>[];
  readonly controllers: readonly Controller[];
  readonly elector: Pick<Elector, 'run' | 'isLeader'>;
  /**
   * Begins each term with a fresh cache, e.g. claims the fencing epoch; tried again when it throws. The controllers start
   * when it has succeeded, and after 10 s without it. Must end soon after `over` has aborted.
   */
  readonly prepare?: (term: Term, over: AbortSignal) => Promise<void>;
  /** Called with the failure when the lease is released because `prepare` has failed for a minute. */
  readonly onGivenUp?: (error: unknown) => void;
  /** Runs at the very end, e.g. to flush Events. */
  readonly finish?: () => Promise<void>;
  /** How long a stop waits for what is under way. Default 15 s: the lease is released before the process is killed. */
  readonly drainMs?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
};

export type Runtime = {
  /** Runs until `stop` aborts, then: nothing new is begun, what runs is finished, the lease is released. */
  readonly run: (stop: AbortSignal) => Promise<void>;
  readonly readiness: () => Readiness;
};

const PREPARE_BACKOFF: Backoff = { firstMs: 200, mostMs: 5_000 };
/** For how long controllers wait for `prepare`. Without it they can do what needs no preparation, e.g. remove finalizers. */
const START_WITHIN_MS = 10_000;
/** A leader whose `prepare` fails for so long releases the lease: another replica may reach what it needs. */
const GIVE_UP_AFTER_MS = 60_000;

/**
 * The controller role's life: caches are filled and followed by every replica, so that a new leader starts warm;
 * controllers run only while this one leads.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { reflectors, controllers, elector, clock, log, random = Math.random, drainMs = 15_000 } = options;

  /** @throws the last failure, when it has failed for too long */
  async function prepare(term: Term, over: AbortSignal): Promise<void> {
    const beganMs = clock.nowMs();
    for (let failures = 1; !over.aborted; failures++) {
      try {
        return await options.prepare?.(term, over);
      } catch (err) {
        if (over.aborted) return;
        log.warn({ err }, 'leading cannot begin yet');
        if (clock.nowMs() - beganMs >= GIVE_UP_AFTER_MS) throw err;
        await sleep(clock, backoffMs(PREPARE_BACKOFF, failures, random), over);
      }
    }
  }

  async function lead(term: Term, stop: AbortSignal, abandoned: AbortSignal): Promise<void> {
    const over = AbortSignal.any([stop, term.signal]);
    // What the former leader wrote last may not be in the cache yet: only a list from the quorum is sure to have it.
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
    if (!prepared.signal.aborted) log.warn('controllers start before the term is prepared');
    const end = AbortSignal.any([over, gaveUp.signal]);
    const lost = AbortSignal.any([term.signal, abandoned]);
    log.info({ controllers: controllers.map(({ name }) => name) }, 'controllers start');
    await Promise.race([Promise.all(controllers.map(({ run }) => run(end, lost))), aborted(abandoned)]);
    log.info('controllers have stopped');
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
      // A replica without a cache could lead but do nothing.
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
