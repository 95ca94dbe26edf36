/** Returns the `q`-quantile (between 0 and 1), or NaN if there are no values. Sorts `values`. */
export function quantile(values: number[], q: number): number {
  values.sort((a, b) => a - b);
  return values[Math.max(0, Math.ceil(values.length * q) - 1)] ?? Number.NaN;
}

/** Returns the median, which is the mean of the two middle values for an even number of values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)] as number;
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/** The values of several rounds. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly values: readonly number[];
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), values };
}

/** Returns `a / b` for each round, since other load on the machine affects both in the same way. */
export function ratios(a: readonly number[], b: readonly number[]): Spread {
  return spreadOf(a.map((value, round) => value / (b[round] ?? Number.NaN)));
}
