import { withDeadline } from '../time/deadline.ts';

interface Sampler<T> {
  /** Returns the last sample, taking a new one first if it is old. Undefined if unknown. Never rejects. */
  readonly read: () => Promise<T | undefined>;
}

/**
 * Creates a sampler which samples on demand, at most every `everyMs`. There is no cost without scrapes, and several
 * scrapers can share the same sample. Samples that fail or take longer than `patienceMs` are unknown.
 */
export function createSampler<T>(options: {
  readonly look: () => Promise<T>;
  readonly everyMs: number;
  readonly patienceMs: number;
  /** A monotonic clock, ms. */
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
