import { withDeadline } from '../time/deadline.ts';

interface Sampler<T> {
  /**
   * Returns the last sample. If it is too old, this takes a new sample first. If it is not known, this returns
   * undefined. Never rejects.
   */
  readonly read: () => Promise<T | undefined>;
}

/**
 * Creates a sampler. Samples are only taken when they are needed, and at most every `everyMs`. If there are no scrapes,
 * there is no cost. If there are several scrapers, they can use the same sample. If a sample fails or takes longer than
 * `patienceMs`, it is unknown.
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
        looking = look().catch(() => undefined);
      }
      return withDeadline(patienceMs, () => looking).catch(() => undefined);
    },
  };
}
