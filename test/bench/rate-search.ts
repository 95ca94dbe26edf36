/** Finds the highest rate held. The caller runs the probes so that it can alternate between searches. */
export interface RateSearch {
  /** Returns the rate to try next, or undefined if the search has ended. */
  readonly next: () => number | undefined;
  readonly record: (held: boolean) => void;
  /** Returns the highest rate held, or 0 if there is none. */
  readonly held: () => number;
}

/**
 * Multiplies or divides `start` by `step` until the highest rate is bracketed, and then bisects geometrically.
 *
 * @param options.tolerance the ratio between the bounds at which the search ends
 * @param options.mostProbes the number of probes after which the search ends
 */
export function searchRate(options: {
  start: number;
  step: number;
  tolerance: number;
  mostProbes: number;
}): RateSearch {
  let low = 0;
  let high = Number.POSITIVE_INFINITY;
  let probe = options.start;
  let probes = 0;
  return {
    next: () => {
      const found = low > 0 && high / low <= options.tolerance;
      return found || probes >= options.mostProbes ? undefined : Math.round(probe);
    },
    record(held) {
      probes++;
      if (held) low = Math.max(low, probe);
      else high = Math.min(high, probe);
      if (high === Number.POSITIVE_INFINITY) probe = low * options.step;
      else if (low === 0) probe = high / options.step;
      else probe = Math.sqrt(low * high);
    },
    held: () => Math.round(low),
  };
}
