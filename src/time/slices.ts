import { setImmediate as nextTurn } from 'node:timers/promises';

/** Work in small pieces, one per `yield`. Other work may run between two pieces. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** The maximum duration of the pieces in a single turn of the event loop, in milliseconds. */
const SLICE_MS = 10;

/**
 * Creates a function that runs long calculations in slices. Between two slices, the event loop performs everything else
 * that is due. If there is more than one calculation, they take turns, and each turn of the event loop still takes a
 * single slice only.
 */
export function createSlices(nowMs: () => number = () => performance.now()): <T>(steps: Steps<T>) => Promise<T> {
  /**
   * The jobs that are waiting for a slice. Each of them runs until the given time and returns false if there is nothing
   * left to do.
   */
  const waiting: ((untilMs: number) => boolean)[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      await nextTurn();
      const untilMs = nowMs() + SLICE_MS;
      do {
        const next = waiting.shift();
        if (next?.(untilMs)) waiting.push(next);
      } while (waiting.length > 0 && nowMs() < untilMs);
    }
    running = false;
  }

  return <T>(steps: Steps<T>) =>
    new Promise<T>((resolve, reject) => {
      waiting.push(untilMs => {
        try {
          do {
            const { done, value } = steps.next();
            if (!done) continue;
            resolve(value);
            return false;
          } while (nowMs() < untilMs);
          return true;
        } catch (error) {
          reject(error);
          return false;
        }
      });
      if (!running) void run();
    });
}

/** Runs a long calculation in slices. All callers take turns, because they share an event loop. */
export const inSlices = createSlices();
