import { Refusal } from '../../http/refusal.ts';
import type { Clock } from '../../time/clock.ts';
import { createOccupancy } from '../../time/occupancy.ts';
import { longPoll } from './long-poll.ts';
import type { Call } from './route.ts';

/** The maximum number of calls of a caller that wait for events at the same time, on one replica. */
export const MOST_WAITING = 16;

/** Seconds after which a refused call may be repeated. */
const RETRY_AFTER_SECONDS = 1;

/** Points for each further read of a call that waits. */
const LOOK_POINTS = 1;

/** WaitingCalls limits how many calls of each caller wait at the same time. */
export interface WaitingCalls {
  /**
   * Runs `wait` as one of the caller's waiting calls, until it settles.
   *
   * @throws Refusal 429 `rate_limited` if the caller already has `most` of them, in which case `wait` isn't run
   */
  readonly run: <T>(caller: string, wait: () => Promise<T>) => Promise<T>;
}

/** Creates the limit. `most` defaults to 16. */
export function createWaitingCalls(most = MOST_WAITING): WaitingCalls {
  const waiting = createOccupancy(most);
  return {
    async run(caller, wait) {
      if (!waiting.enter(caller)) {
        const detail = `You have ${most} calls that wait for events, and the limit is ${most}. Wait until one of these calls has been answered, or send the call without a waiting time.`;
        throw new Refusal('rate_limited', { detail, headers: { 'retry-after': `${RETRY_AFTER_SECONDS}` } });
      }
      try {
        return await wait();
      } finally {
        waiting.leave(caller);
      }
    },
  };
}

/**
 * Returns the function that a call waits with. Calls that don't wait aren't limited. Each further read costs a point, and
 * is left out if there is none left.
 */
export function createWaiter(options: {
  readonly clock: Clock;
  readonly waiting: WaitingCalls;
  readonly caller: string;
  readonly signal: AbortSignal;
  readonly spend: (points: number) => boolean;
}): Call<'caller', string, unknown, unknown>['waitFor'] {
  const { clock, waiting, caller, signal, spend } = options;
  const mayLook = () => spend(LOOK_POINTS);
  return (waitSeconds, ask, isEnough) => {
    const poll = () => longPoll({ clock, signal, waitMs: waitSeconds * 1_000, mayLook }, ask, isEnough);
    return waitSeconds === 0 ? poll() : waiting.run(caller, poll);
  };
}
