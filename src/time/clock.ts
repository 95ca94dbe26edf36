/** A clock, injected so that tests control the time. */
export type Clock = {
  /** Milliseconds of a monotonic clock, for intervals and deadlines. */
  readonly nowMs: () => number;
  /** Milliseconds since the epoch. Only for times that are shown: wall clocks jump. */
  readonly wallMs: () => number;
  /** Runs `run` once after `delayMs`. The returned function cancels it. */
  readonly setTimer: (run: () => void, delayMs: number) => () => void;
};

/** Maximum delay of setTimeout, ms. It fires at once for longer ones. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer: (run, delayMs) => {
    const timer = setTimeout(run, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Waits `delayMs`, or until `signal` aborts. Never rejects: callers check the signal. */
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

/** Resolves when `signal` has aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }));
}
