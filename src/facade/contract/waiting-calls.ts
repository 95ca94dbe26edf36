import { Refusal } from '../../http/refusal.ts';
import type { Clock } from '../../time/clock.ts';
import { createOccupancy } from '../../time/occupancy.ts';
import { longPoll } from './long-poll.ts';
import type { Call } from './route.ts';

/** The maximum number of concurrent calls of a caller that are waiting for events, on one replica. */
export const MOST_WAITING = 16;

/** The number of seconds after which a rejected call can be repeated. */
const RETRY_AFTER_SECONDS = 1;

/** The points for each additional read of a waiting call. */
const LOOK_POINTS = 1;

/** WaitingCalls limits the number of concurrent waiting calls of each caller. */
export interface WaitingCalls {
  /**
   * Runs `wait` as a waiting call of the caller, until it settles.
   *
   * @throws Refusal 429 `rate_limited` without running `wait`, if the caller already has `most` waiting calls
   */
  readonly run: <T>(caller: string, wait: () => Promise<T>) => Promise<T>;
}

/** Creates the limit. `most` defaults to 16. */
export function createWaitingCalls(most = MOST_WAITING): WaitingCalls {
  const waiting = createOccupancy(most);
  return {
    async run(caller, wait) {
      if (!waiting.enter(caller)) {
        const detail = `You have ${most} calls that wait for events, which is the limit. Wait until one of these calls has been answered or send the call without a waiting time.`;
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
 * Returns the function used by a call to wait. Calls which don't wait are not limited. Each additional read costs one
 * point and is skipped if there are no points left.
 */
export function createWaiter(options: {
  readonly clock: Clock;
  readonly waiting: WaitingCalls;
  readonly caller: string;
  readonly signal: AbortSignal;
  /** Ends all waits, because the server stops. The calls return the last result. */
  readonly closing: AbortSignal;
  readonly spend: (points: number) => boolean;
  /** Called before each wait. */
  readonly onWait: () => void;
  /** Called before each additional read. @throws Refusal if the caller has lost access in the meantime */
  readonly checkAccess: () => Promise<unknown>;
}): Call<'caller', string, unknown, unknown>['waitFor'] {
  const { clock, waiting, caller, closing, spend, onWait, checkAccess } = options;
  const mayLook = () => spend(LOOK_POINTS);
  return (waitSeconds, ask, isEnough) => {
    let hasAsked = false;
    const look = async () => {
      if (hasAsked) await checkAccess();
      hasAsked = true;
      return ask();
    };
    const poll = (signal: AbortSignal) =>
      longPoll({ clock, signal, waitMs: waitSeconds * 1_000, mayLook, onWait }, look, isEnough);
    if (waitSeconds === 0) return poll(options.signal);
    return waiting.run(caller, () => poll(AbortSignal.any([options.signal, closing])));
  };
}
