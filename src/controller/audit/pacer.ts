import { type Clock, sleep } from '../../time/clock.ts';

/**
 * The maximum time between two commands, in milliseconds. This maximum limits short passes to 200 commands per second.
 */
const LONGEST_GAP_MS = 5;
/** The target duration of a pass that has many commands, in milliseconds. */
const PASS_MS = 20_000;

/**
 * Distributes the commands of a pass over time. The interval depends on the number of commands in the previous pass.
 */
export function createPacer(clock: Pick<Clock, 'setTimer'>) {
  let count = 0;
  let gapMs = LONGEST_GAP_MS;
  return {
    pace: async (): Promise<void> => {
      count++;
      await sleep(clock, gapMs);
    },
    /** Must be called at the end of each pass. */
    next: (): void => {
      gapMs = Math.min(LONGEST_GAP_MS, PASS_MS / Math.max(1, count));
      count = 0;
    },
  };
}
