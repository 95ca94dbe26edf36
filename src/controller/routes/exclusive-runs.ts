import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, sleep } from '../../time/clock.ts';

/**
 * ExclusiveRuns ensures that there is only a single function running at a time. The functions run in the order of the
 * calls.
 */
export interface ExclusiveRuns {
  /** Returns true if a function is running, or waiting to run. */
  readonly isRunning: () => boolean;
  /**
   * Runs `work` soon, and after a rest. All calls made before it begins share this run, so that many changes at once
   * only cost a single run.
   */
  readonly join: (work: () => Promise<void>) => Promise<void>;
  /** Runs `work` exclusively as soon as no other run is in progress. */
  readonly alone: (work: () => Promise<void>) => Promise<void>;
}

/**
 * Limits for the rest, in milliseconds. A rest takes as long as the last run, so that a tenant whose objects change all
 * the time uses half of the time at most.
 */
const SHORTEST_REST_MS = 10;
const LONGEST_REST_MS = 100;

/** Creates the rest before a run. If the last run was some time ago, it only takes one turn of the event loop. */
function createRest(clock: Pick<Clock, 'nowMs' | 'setTimer'>) {
  let endMs = Number.NEGATIVE_INFINITY;
  let tookMs = 0;
  return {
    rest: async (): Promise<void> => {
      const restMs = Math.min(LONGEST_REST_MS, Math.max(SHORTEST_REST_MS, tookMs));
      const leftMs = endMs + restMs - clock.nowMs();
      await (leftMs > 0 ? sleep(clock, leftMs) : nextTurn());
    },
    measure: async (work: () => Promise<void>): Promise<void> => {
      const beganMs = clock.nowMs();
      try {
        await work();
      } finally {
        endMs = clock.nowMs();
        tookMs = endMs - beganMs;
      }
    },
  };
}

export function createExclusiveRuns(clock: Pick<Clock, 'nowMs' | 'setTimer'>): ExclusiveRuns {
  const { rest, measure } = createRest(clock);
  /** Resolves when all previous runs have ended. */
  let last: Promise<void> = Promise.resolve();
  let runs = 0;
  /** A shared run that has not begun. */
  let next: Promise<void> | undefined;

  function alone(work: () => Promise<void>): Promise<void> {
    runs++;
    const run = last.then(work).finally(() => {
      runs--;
    });
    last = run.catch(() => {});
    return run;
  }

  async function begin(work: () => Promise<void>): Promise<void> {
    await rest();
    next = undefined;
    await measure(work);
  }

  return {
    isRunning: () => runs > 0,
    join: work => (next ??= alone(() => begin(work))),
    alone,
  };
}
