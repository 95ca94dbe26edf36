import type { ServerResponse } from 'node:http';
import type { Clock } from '../../../time/clock.ts';
import { createFairTurns, type NoTurn } from '../../../time/fair-turns.ts';

/** The longest pause after a call, so that a slow Redis does not make a workspace wait for minutes. */
const LONGEST_PAUSE_MS = 5_000;
/** Longer than a call can take, including the pause after it. */
const HOLD_MS = 60_000;

interface SandboxTurnOptions {
  /** The maximum number of calls of a workspace in progress. */
  readonly places: number;
  /** After a call, its place is free after this many times as long as the call took. */
  readonly pauses: number;
  /** The maximum number of calls of a workspace that wait. */
  readonly mostWaiting: number;
}

/** A report takes up to 2,000 calls of Redis. A workspace uses up to a quarter of its time for them. */
export const OF_REPORTS: SandboxTurnOptions = { places: 1, pauses: 3, mostWaiting: 16 };
/**
 * Before an event is stored in a run, the subscriptions with its group key are read, of which there can be thousands.
 */
export const OF_EVENTS: SandboxTurnOptions = { places: 4, pauses: 0, mostWaiting: 512 };

/** Sent if the calls of a workspace would have to wait for too long. */
export const TOO_MANY = {
  detail: 'Too many sandbox requests of this workspace are waiting. Retry after the number of seconds in Retry-After.',
  headers: { 'retry-after': '5' },
};

/** SandboxTurns decides when a call of the sandbox is made, so that it does not delay the events of others. */
export interface SandboxTurns {
  /**
   * Makes a call when it is the turn of the workspace. If this does not happen, returns the reason. The reason is
   * 'aborted' if the client has disconnected while waiting.
   */
  readonly run: <T>(workspace: string, response: ServerResponse, call: () => Promise<T>) => Promise<T | NoTurn>;
}

/** Creates the turns. `mostWaitMs` is the longest time that a call waits. */
export function createSandboxTurns(
  { places, pauses, mostWaiting }: SandboxTurnOptions,
  mostWaitMs: number,
  clock: Pick<Clock, 'nowMs' | 'setTimer'>,
): SandboxTurns {
  const turns = createFairTurns({ places, mostWaiting, mostWaitMs, holdMs: HOLD_MS, clock });
  return {
    async run(workspace, response, call) {
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      const leave = await turns.take(workspace, { signal: gone.signal });
      if (typeof leave === 'string') return leave;
      const beganMs = clock.nowMs();
      try {
        return await call();
      } finally {
        const pauseMs = Math.min(LONGEST_PAUSE_MS, pauses * (clock.nowMs() - beganMs));
        if (pauseMs === 0) leave();
        else clock.setTimer(leave, pauseMs);
      }
    },
  };
}
