import { nextAttempt } from './backoff.ts';

/** What an event of a sandbox run asks the simulated endpoint to answer; nothing: every attempt succeeds. */
export interface Simulation {
  /** HTTP status of the attempts that fail, 300 to 599. */
  readonly failCode?: number;
  /** How many attempts fail, 0 to 20; absent with a code: all of them. */
  readonly failCount?: number;
}

export const FAIL_CODES = { least: 300, most: 599 } as const;
export const FAIL_COUNTS = { least: 0, most: 20 } as const;

/** What fails without a code that says how. */
const DEFAULT_FAIL_CODE = 500;
const SUCCESS = 200;

/** Sandbox time runs this much faster than production's: an hour between two attempts takes a tenth of a second. */
export const COMPRESSION = 36_000;

/** How long a sandbox run waits where production waits `delayMs`; whole ms, and at least one where production waits. */
export function compressDelay(delayMs: number): number {
  return Math.ceil(delayMs / COMPRESSION);
}

/**
 * HTTP status that an attempt is answered with.
 *
 * @param attempt number of the attempt, from 1
 */
export function simulatedStatus({ failCode, failCount }: Simulation, attempt: number): number {
  const failing = failCount ?? (failCode === undefined ? 0 : Number.POSITIVE_INFINITY);
  return attempt <= failing ? (failCode ?? DEFAULT_FAIL_CODE) : SUCCESS;
}

/** One attempt as the retry policy has it; delays in ms after the attempt before, 0 for the first. */
export interface PlannedAttempt {
  readonly status: number;
  /** What production would wait at least: the schedule, without jitter. */
  readonly delayMs: number;
  /** With the jitter that this very attempt gets, as production would wait. */
  readonly jitteredDelayMs: number;
  /** What the run waits. */
  readonly compressedDelayMs: number;
}

/** How a delivery goes on by its simulation and its endpoint's schedule alone. */
export interface DeliveryPlan {
  readonly outcome: 'delivered' | 'dead';
  readonly attempts: readonly PlannedAttempt[];
}

/**
 * The attempts that a delivery takes from its first to its end.
 *
 * @param retryMs the endpoint's waits after the 1st, 2nd, … failed attempt, ms
 * @param jitterOf share of the jitter after the n-th failed attempt, from 0 to 1: the one that the run itself uses
 */
export function planDelivery(
  simulation: Simulation,
  retryMs: readonly number[],
  jitterOf: (failures: number) => number,
): DeliveryPlan {
  const attempts: PlannedAttempt[] = [];
  let waited = { delayMs: 0, jitteredDelayMs: 0, compressedDelayMs: 0 };
  for (let number = 1; ; number++) {
    const status = simulatedStatus(simulation, number);
    attempts.push({ status, ...waited });
    if (status < 300) return { outcome: 'delivered', attempts };
    const failed = { schedule: retryMs, failures: number, nowMs: 0 };
    const next = nextAttempt({ ...failed, randomUnit: jitterOf(number) });
    if (next === 'dead') return { outcome: 'dead', attempts };
    const least = nextAttempt({ ...failed, randomUnit: 0 }) as { dueAtMs: number };
    waited = {
      delayMs: least.dueAtMs,
      jitteredDelayMs: next.dueAtMs,
      compressedDelayMs: compressDelay(next.dueAtMs),
    };
  }
}
