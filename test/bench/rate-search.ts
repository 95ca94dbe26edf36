/** Finds the highest rate that is held, probe by probe: the caller runs the probes, so that searches can alternate. */
export interface RateSearch {
  /** The rate to try next; undefined when the answer is known. */
  readonly next: () => number | undefined;
  readonly record: (held: boolean) => void;
  /** The highest rate that was held; 0 when none was. */
  readonly held: () => number;
}

/**
 * Doubles or halves by `step` from `start` until it is bracketed, then bisects (geometrically) to `tolerance`.
 *
 * @param mostProbes ends the search with what is known by then
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
