import { type Clock, sleep } from '../../time/clock.ts';

/** Pause between two commands, ms: at most 200 a second. */
const LONGEST_GAP_MS = 5;
/** Target duration of a pass with many commands, ms. */
const PASS_MS = 20_000;

/** Spreads the commands of a pass over time, by the count of the last pass. */
export function createPacer(clock: Pick<Clock, 'setTimer'>) {
  let count = 0;
  let gapMs = LONGEST_GAP_MS;
  return {
    pace: async (): Promise<void> => {
      count++;
      await sleep(clock, gapMs);
    },
    /** Ends a pass. */
    next: (): void => {
      gapMs = Math.min(LONGEST_GAP_MS, PASS_MS / Math.max(1, count));
      count = 0;
    },
  };
}
