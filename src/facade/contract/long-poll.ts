import { type Clock, sleep } from '../../time/clock.ts';

/** Interval between two reads. */
const LOOK_EVERY_MS = 500;

/**
 * Calls `ask` until its answer is enough, the time is over or the caller disconnects. Returns the last answer. With a
 * time of 0 it asks once. Rejects if `ask` rejects.
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
