/** The smallest value that at least the part `q` of the values does not exceed; NaN of none. Sorts `values`. */
export function quantile(values: number[], q: number): number {
  values.sort((a, b) => a - b);
  return values[Math.max(0, Math.ceil(values.length * q) - 1)] ?? Number.NaN;
}

/** Median of an odd number of values, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)] as number;
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/** What several rounds gave. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly values: readonly number[];
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), values };
}

/** Round by round `a / b`: both of a round had the same neighbours on the machine. */
export function ratios(a: readonly number[], b: readonly number[]): Spread {
  return spreadOf(a.map((value, round) => value / (b[round] ?? Number.NaN)));
}
