/** Time as the loops of this project see it. Injected, so that a test moves it by hand. */
export type Clock = {
  /** Milliseconds of a clock that never goes backward. For intervals and deadlines. */
  readonly nowMs: () => number;
  /** Milliseconds since the epoch. For what is shown to others only: wall clocks jump. */
  readonly wallMs: () => number;
  /** Runs `run` once after `delayMs`; the answer cancels it. */
  readonly setTimer: (run: () => void, delayMs: number) => () => void;
};

/** setTimeout fires at once for anything longer than this. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer: (run, delayMs) => {
    const timer = setTimeout(run, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Waits `delayMs`, or until `signal` aborts. Never rejects: the caller looks at the signal. */
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
