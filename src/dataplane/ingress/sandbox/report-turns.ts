import type { Clock } from '../../../time/clock.ts';
import { createFairTurns, type NoTurn } from '../../../time/fair-turns.ts';

/** After a report, its workspace waits for this many times as long as the report took. */
const GIVEN_WAY = 3;
/** The longest time that a workspace waits after a report, so that a slow Redis does not make it wait for minutes. */
const LONGEST_WAY_MS = 5_000;
/** The maximum number of requests of a workspace that wait. */
const MOST_WAITING = 16;
/** Longer than a report can take, including the time after it. */
const HOLD_MS = 60_000;

/** ReportTurns decides when a report is read. */
export interface ReportTurns {
  /** Runs `read` when it is the turn of the workspace. If this does not happen, returns the reason. */
  readonly run: <T>(workspace: string, signal: AbortSignal, read: () => Promise<T>) => Promise<T | NoTurn>;
}

/**
 * Creates the turns. A report takes as many calls of Redis as thousands of events. Each workspace has one report at a
 * time and uses up to a quarter of it, so that polling a run does not delay the events of others.
 */
export function createReportTurns(mostWaitMs: number, clock: Pick<Clock, 'nowMs' | 'setTimer'>): ReportTurns {
  const turns = createFairTurns({
    places: 1,
    holdMs: HOLD_MS,
    mostWaiting: MOST_WAITING,
    mostWaitMs,
    clock,
  });
  return {
    async run(workspace, signal, read) {
      const leave = await turns.take(workspace, { signal });
      if (typeof leave === 'string') return leave;
      const beganMs = clock.nowMs();
      try {
        return await read();
      } finally {
        clock.setTimer(leave, Math.min(LONGEST_WAY_MS, GIVEN_WAY * (clock.nowMs() - beganMs)));
      }
    },
  };
}
