/** Clock provides the current time and timers. It is passed as a dependency so that tests can control the time. */
export type Clock = {
  /** Returns the time of a monotonic clock in milliseconds. It should be used for intervals and deadlines. */
  readonly nowMs: () => number;
  /**
   * Returns the milliseconds since the epoch. It should only be used for times that are shown to users, because a wall
   * clock can jump.
   */
  readonly wallMs: () => number;
  /** Calls `run` once after `delayMs`. The returned function can be used to cancel the timer. */
  readonly setTimer: (run: () => void, delayMs: number) => () => void;
};

/**
 * The maximum delay that is supported by setTimeout, in milliseconds. If the delay is longer, the timer fires
 * immediately.
 */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer: (run, delayMs) => {
    const timer = setTimeout(run, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/**
 * Waits for `delayMs` or until `signal` is aborted. The promise does not reject, so the caller should check the signal.
 */
export function sleep(clock: Pick<Clock, 'setTimer'>, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise(resolve => {
    const finish = () => {
      cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = clock.setTimer(finish, delayMs);
    signal?.addEventListener('abort', finish, { once: true });
  });
}

/** Resolves when `signal` has been aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }));
}
