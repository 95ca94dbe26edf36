export interface Sampler<T> {
  /** What the last look found, looking anew when that is old; undefined when nothing is known. Never rejects. */
  readonly read: () => Promise<T | undefined>;
}

/**
 * Looks only when somebody asks, and not more often than every `everyMs`: who is not scraped asks nothing, and who is
 * scraped by many asks no more than for one. A look that fails, or takes longer than `patienceMs`, is an unknown.
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
      return patiently(looking, patienceMs);
    },
  };
}

async function patiently<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(resolve, ms, undefined);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
