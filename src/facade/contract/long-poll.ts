import { type Clock, sleep } from '../../time/clock.ts';

/** The interval between two reads. */
const LOOK_EVERY_MS = 500;

/**
 * Calls `ask` until we have a sufficient answer, the time is up, or the caller has disconnected. Returns the last
 * answer. With a time of 0, `ask` is called once. Rejects if `ask` does.
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
