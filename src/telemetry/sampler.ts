import { withDeadline } from '../time/deadline.ts';

interface Sampler<T> {
  /**
   * Returns the last sample. Takes a new sample first if the last sample is too old. Undefined if it is not known.
   * Never rejects.
   */
  readonly read: () => Promise<T | undefined>;
}

/**
 * Creates a sampler. Samples are only taken when they are required, and at most every `everyMs`. Without any scrapes,
 * there is no cost. Several scrapers can use the same sample. A sample that fails or takes longer than `patienceMs` is
 * unknown.
 */
export function createSampler<T>(options: {
  readonly look: () => Promise<T>;
  readonly everyMs: number;
  readonly patienceMs: number;
  /** The time of a monotonic clock, in milliseconds. */
  readonly monotonicMs: () => number;
}): Sampler<T> {
  const { look, everyMs, patienceMs, monotonicMs } = options;
  let lookedMs = Number.NEGATIVE_INFINITY;
  let looking: Promise<T | undefined> = Promise.resolve(undefined);
  return {
    read() {
      const nowMs = monotonicMs();
      if (nowMs - lookedMs >= everyMs) {
        lookedMs = nowMs;
        looking = look();
      }
      return withDeadline(patienceMs, () => looking).catch(() => undefined);
    },
  };
}
