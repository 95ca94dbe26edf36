import { type Clock, sleep } from '../../time/clock.ts';

/** Between two commands, ms: at most 200 a second. */
const LONGEST_GAP_MS = 5;
/** With more to do than fits, a pass may take so long, ms. */
const PASS_MS = 20_000;

/** Spreads the commands of a pass over time, by how many the last one needed. */
export function createPacer(clock: Pick<Clock, 'setTimer'>) {
  let count = 0;
  let gapMs = LONGEST_GAP_MS;
  return {
    pace: async (): Promise<void> => {
      count++;
      await sleep(clock, gapMs);
    },
    /** The pass is over. */
    next: (): void => {
      gapMs = Math.min(LONGEST_GAP_MS, PASS_MS / Math.max(1, count));
      count = 0;
    },
  };
}
