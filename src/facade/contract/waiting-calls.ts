import { Refusal } from '../../http/refusal.ts';

/** Maximum number of calls of a caller that wait for events at the same time, on one replica. */
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

/** Creates the limit. Only callers with waiting calls are kept in memory. `most` defaults to 16. */
export function createWaitingCalls(most = MOST_WAITING): WaitingCalls {
  const waiting = new Map<string, number>();

  function leave(caller: string): void {
    const left = (waiting.get(caller) ?? 0) - 1;
    if (left > 0) waiting.set(caller, left);
    else waiting.delete(caller);
  }

  return {
    async run(caller, wait) {
      const used = waiting.get(caller) ?? 0;
      if (used >= most) {
        const detail = `You have ${used} calls that wait for events, and the limit is ${most}. Wait until one of them has been answered, or leave out the time to wait.`;
        throw new Refusal('rate_limited', { detail, headers: { 'retry-after': `${RETRY_AFTER_SECONDS}` } });
      }
      waiting.set(caller, used + 1);
      try {
        return await wait();
      } finally {
        leave(caller);
      }
    },
  };
}
