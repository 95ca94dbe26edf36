import { type Clock, sleep } from '../../time/clock.ts';

/** Longest gap between two commands, in milliseconds. This limits short passes to 200 commands per second. */
const LONGEST_GAP_MS = 5;
/** Target duration for a pass with many commands, in milliseconds. */
const PASS_MS = 20_000;

/** Spreads the commands of a pass over time, using an interval based on the number of commands in the previous pass. */
export function createPacer(clock: Pick<Clock, 'setTimer'>) {
  let count = 0;
  let gapMs = LONGEST_GAP_MS;
  return {
    pace: async (): Promise<void> => {
      count++;
      await sleep(clock, gapMs);
    },
    /** Must be called once a pass ends. */
    next: (): void => {
      gapMs = Math.min(LONGEST_GAP_MS, PASS_MS / Math.max(1, count));
      count = 0;
    },
  };
}
