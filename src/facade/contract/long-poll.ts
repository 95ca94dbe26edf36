import { type Clock, sleep } from '../../time/clock.ts';

/** The interval between two reads. */
const LOOK_EVERY_MS = 500;

interface PollOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly waitMs: number;
  readonly mayLook?: () => boolean;
  readonly onWait?: () => void;
}

/**
 * Calls `ask` until its result is sufficient, the time is up, or the caller has disconnected. Returns the last result.
 * If the time is 0, `ask` is only called once. Rejects if `ask` rejects.
 *
 * @param mayLook called before each additional read, which is skipped if it returns false
 * @param onWait called before each wait
 */
export async function longPoll<T>(
  { clock, signal, waitMs, mayLook = () => true, onWait }: PollOptions,
  ask: () => Promise<T>,
  isEnough: (answer: T) => boolean,
): Promise<T> {
  const untilMs = clock.nowMs() + waitMs;
  let answer = await ask();
  for (;;) {
    const leftMs = untilMs - clock.nowMs();
    if (isEnough(answer) || leftMs <= 0) return answer;
    onWait?.();
    await sleep(clock, Math.min(LOOK_EVERY_MS, leftMs), signal);
    if (signal.aborted) return answer;
    if (mayLook()) answer = await ask();
  }
}
