import { type Clock, sleep } from '../../time/clock.ts';

/** The interval between two reads. */
const LOOK_EVERY_MS = 500;

interface PollOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly waitMs: number;
  readonly mayLook?: () => boolean;
}

/**
 * Calls `ask` until we have a sufficient answer, the time is up, or the caller has disconnected. Returns the last
 * answer. With a time of 0, `ask` is called once. Rejects if `ask` does.
 *
 * @param mayLook asked before each further read, which is left out if it returns false
 */
export async function longPoll<T>(
  { clock, signal, waitMs, mayLook = () => true }: PollOptions,
  ask: () => Promise<T>,
  isEnough: (answer: T) => boolean,
): Promise<T> {
  const untilMs = clock.nowMs() + waitMs;
  let answer = await ask();
  for (;;) {
    const leftMs = untilMs - clock.nowMs();
    if (isEnough(answer) || leftMs <= 0) return answer;
    await sleep(clock, Math.min(LOOK_EVERY_MS, leftMs), signal);
    if (signal.aborted) return answer;
    if (mayLook()) answer = await ask();
  }
}
