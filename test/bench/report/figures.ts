import type { PipeRun } from '../run.ts';
import type { Spread } from './statistics.ts';

export interface Correctness {
  readonly deliveries: number;
  readonly missing: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
}

/** A figure, with an optional target. The name contains the unit of `value`. */
export interface Figure {
  readonly name: string;
  readonly value: Spread;
  readonly target?: Target;
  /** The absolute figures, which are only valid for this machine. */
  readonly detail: string;
}

export interface Target {
  readonly sign: '>=' | '<=';
  readonly limit: number;
}

export const atLeast = (limit: number): Target => ({ sign: '>=', limit });
export const atMost = (limit: number): Target => ({ sign: '<=', limit });

/** Returns whether the median reaches the target, or undefined if there is no target. */
export function reaches({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined;
  return target.sign === '>=' ? value.median >= target.limit : value.median <= target.limit;
}

type Judged = Pick<PipeRun, 'expected' | 'missing' | 'duplicates' | 'outOfOrder'>;

/** Sums the results of runs. Each event must arrive once, and in the order of its group key. */
export function judgeRuns(runs: readonly Judged[]): Correctness {
  const sum = (of: (run: Judged) => number) => runs.reduce((total, run) => total + of(run), 0);
  return {
    deliveries: sum(run => run.expected),
    missing: sum(run => run.missing),
    duplicates: sum(run => run.duplicates),
    outOfOrder: sum(run => run.outOfOrder),
  };
}
