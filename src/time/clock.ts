/**
 * Clock provides timers and the current time. The clock is passed in as a dependency, so that tests can control the
 * time.
 */
export type Clock = {
  /** Returns the time of a monotonic clock in milliseconds. Should be used for intervals and deadlines. */
  readonly nowMs: () => number;
  /**
   * Returns the number of milliseconds since the epoch. A wall clock can jump, so this should only be used for times
   * shown to users.
   */
  readonly wallMs: () => number;
  /** Calls `run` once after `delayMs`. Returns a function to cancel the timer. */
  readonly setTimer: (run: () => void, delayMs: number) => () => void;
};

/**
 * The longest delay that can be used with setTimeout, in milliseconds. With anything longer, the timer would fire
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

/** Calls `run` every `everyMs`, starting after the first `everyMs`. Returns a function to stop this. */
export type Repeat = (run: () => void, everyMs: number) => () => void;

/** Repeats a call as long as something else keeps the process running. */
export const every: Repeat = (run, everyMs) => {
  const timer = setInterval(run, everyMs).unref();
  return () => clearInterval(timer);
};

/** Waits until `delayMs` has passed or `signal` has been aborted. Never rejects, so callers should check the signal. */
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
