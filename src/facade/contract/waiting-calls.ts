import { Refusal } from '../../http/refusal.ts';
import { createOccupancy } from '../../time/occupancy.ts';

/** The maximum number of calls of a caller that wait for events at the same time, on one replica. */
export const MOST_WAITING = 16;

/** Seconds after which a refused call may be repeated. */
const RETRY_AFTER_SECONDS = 1;

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
        const detail = `You have ${most} calls that wait for events, and the limit is ${most}. Wait until one of them has been answered, or leave out the time to wait.`;
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
