import { withDeadline } from '../time/deadline.ts';

interface Sampler<T> {
  /** Returns the last sample, and takes a new one if it is old; undefined if unknown. Never rejects. */
  readonly read: () => Promise<T | undefined>;
}

/**
 * Creates a sampler that samples on demand, at most every `everyMs`. Without scrapes it costs nothing, and several
 * scrapers share one sample. A sample that fails or takes longer than `patienceMs` is unknown.
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
