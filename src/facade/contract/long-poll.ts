import { type Clock, sleep } from '../../time/clock.ts';

/** Between two looks. */
const LOOK_EVERY_MS = 500;

/**
 * Asks again until the answer is enough, the time is over or the caller has gone; the last answer. Time 0 asks once.
 * Rejects as `ask` does.
 */
export async function longPoll<T>(
  { clock, signal, waitMs }: { readonly clock: Clock; readonly signal: AbortSignal; readonly waitMs: number },
  ask: () => Promise<T>,
  isEnough: (answer: T) => boolean,
): Promise<T> {
  const untilMs = clock.nowMs() + waitMs;
  for (;;) {
    const answer = await ask();
    const leftMs = untilMs - clock.nowMs();
    if (isEnough(answer) || leftMs <= 0) return answer;
    await sleep(clock, Math.min(LOOK_EVERY_MS, leftMs), signal);
    if (signal.aborted) return answer;
  }
}
