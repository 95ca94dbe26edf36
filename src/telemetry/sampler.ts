import { withDeadline } from '../time/deadline.ts';

interface SamplerOptions {
  /** Earlier scrapes reuse the last result. The default is slightly shorter than the common scrape interval of 15 s. */
  readonly everyMs?: number;
  /** The time that a scrape may wait. Defaults to one second. */
  readonly patienceMs?: number;
  /** The time of a monotonic clock, in milliseconds. */
  readonly monotonicMs?: () => number;
}

/**
 * Creates a function that returns the last sample. The function takes a new sample first if the last one is too old.
 * Without any scrapes, there is no cost. Several scrapers can use the same sample. A sample that fails or takes too
 * long is undefined. The function never rejects.
 */
export function createSampler<T>(
  look: () => Promise<T>,
  { everyMs = 14_000, patienceMs = 1_000, monotonicMs = () => performance.now() }: SamplerOptions = {},
): () => Promise<T | undefined> {
  let lookedMs = Number.NEGATIVE_INFINITY;
  let looking: Promise<T | undefined> = Promise.resolve(undefined);
  return () => {
    const nowMs = monotonicMs();
    if (nowMs - lookedMs >= everyMs) {
      lookedMs = nowMs;
      looking = look();
    }
    return withDeadline(patienceMs, () => looking).catch(() => undefined);
  };
}
