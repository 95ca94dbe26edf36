import { nextAttempt } from './backoff.ts';

/** The answers of the simulated endpoint for an event of a sandbox run. Empty: every attempt succeeds. */
export interface Simulation {
  /** HTTP status of failed attempts, 300 to 599. */
  readonly failCode?: number;
  /** Number of attempts that fail, 0 to 20; absent with a code: all. */
  readonly failCount?: number;
}

/** Status of failures without a code. */
const DEFAULT_FAIL_CODE = 500;
const SUCCESS = 200;

/** Sandbox time runs this much faster than production: one hour between attempts takes a tenth of a second. */
export const COMPRESSION = 36_000;

/** Returns the wait of a sandbox run for `delayMs` of production; whole ms, at least 1 if production waits. */
export function compressDelay(delayMs: number): number {
  return Math.ceil(delayMs / COMPRESSION);
}

/**
 * Returns the HTTP status that answers an attempt.
 *
 * @param attempt number of the attempt, from 1
 */
export function simulatedStatus({ failCode, failCount }: Simulation, attempt: number): number {
  const failing = failCount ?? (failCode === undefined ? 0 : Number.POSITIVE_INFINITY);
  return attempt <= failing ? (failCode ?? DEFAULT_FAIL_CODE) : SUCCESS;
}

/** One attempt by the retry policy; delays in ms after the previous attempt, 0 for the first. */
interface PlannedAttempt {
  readonly status: number;
  /** Minimum wait in production: the schedule without jitter. */
  readonly delayMs: number;
  /** Wait in production with the jitter of this attempt. */
  readonly jitteredDelayMs: number;
  /** Wait of the run. */
  readonly compressedDelayMs: number;
}

/** The course of a delivery by its simulation and its endpoint's schedule alone. */
interface DeliveryPlan {
  readonly outcome: 'delivered' | 'dead';
  readonly attempts: readonly PlannedAttempt[];
}

/**
 * Returns the attempts of a delivery from the first to the last.
 *
 * @param retryMs the endpoint's waits after the 1st, 2nd, … failed attempt, ms
 * @param jitterOf returns the share of jitter after the n-th failed attempt, from 0 to 1; the run uses the same
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
