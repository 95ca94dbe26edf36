import type { PipeRun } from '../run.ts';
import type { Spread } from './statistics.ts';

export interface Correctness {
  readonly deliveries: number;
  readonly missing: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
}

/** A figure with a target; `value` is dimensionless, a count or bytes, as the name says. */
export interface Figure {
  readonly name: string;
  readonly value: Spread;
  readonly target?: Target;
  /** Absolute figures, of this machine only. */
  readonly detail: string;
}

export interface Target {
  readonly sign: '>=' | '<=';
  readonly limit: number;
}

export const atLeast = (limit: number): Target => ({ sign: '>=', limit });
export const atMost = (limit: number): Target => ({ sign: '<=', limit });

/** Whether the median reaches the target; undefined without one. */
export function reaches({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined;
  return target.sign === '>=' ? value.median >= target.limit : value.median <= target.limit;
}

type Judged = Pick<PipeRun, 'expected' | 'missing' | 'duplicates' | 'outOfOrder'>;

/** Sums runs: every event has to arrive once and in order of its group key. */
export function judgeRuns(runs: readonly Judged[]): Correctness {
  const sum = (of: (run: Judged) => number) => runs.reduce((total, run) => total + of(run), 0);
  return {
    deliveries: sum(run => run.expected),
    missing: sum(run => run.missing),
    duplicates: sum(run => run.duplicates),
    outOfOrder: sum(run => run.outOfOrder),
  };
}
