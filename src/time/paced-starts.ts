/** Calls the functions in the order of these calls. A function that is still waiting is only called once. */
export type PacedStarts = (start: () => void | Promise<void>) => void;

/**
 * Starts a few of many works at once, so that nothing else has to wait for all of them.
 *
 * @param atOnce the number of starts until `caughtUp` has resolved
 * @param caughtUp resolves when the functions that were started no longer delay others
 * @param onError called with the error of a function that failed, or of `caughtUp`. The others are called all the same
 */
export function createPacedStarts(
  atOnce: number,
  caughtUp: () => Promise<void>,
  onError: (error: unknown) => void,
): PacedStarts {
  const waiting = new Set<() => void | Promise<void>>();
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.size > 0) {
      let started = 0;
      for (const start of waiting) {
        if (started++ === atOnce) break;
        waiting.delete(start);
        (async () => start())().catch(onError);
      }
      await caughtUp().catch(onError);
    }
    isRunning = false;
  }

  return start => {
    waiting.add(start);
    if (!isRunning) void run();
  };
}
