import { nextAttempt } from './backoff.ts';

/** The responses of the simulated endpoint for an event of a sandbox run. If it is empty, every attempt succeeds. */
export interface Simulation {
  /** The HTTP status of failed attempts, from 300 to 599. */
  readonly failCode?: number;
  /** The number of attempts that fail, from 0 to 20. If only the code is set, all attempts fail. */
  readonly failCount?: number;
}

/** The status of failures if no code is set. */
const DEFAULT_FAIL_CODE = 500;
const SUCCESS = 200;

/**
 * The factor by which time in the sandbox is faster than in production. A wait of one hour takes a tenth of a second.
 */
export const COMPRESSION = 36_000;

/**
 * Converts the wait `delayMs` in production to the wait in a sandbox run. The result is a whole number of milliseconds
 * and is at least 1 if there is a wait in production.
 */
export function compressDelay(delayMs: number): number {
  return Math.ceil(delayMs / COMPRESSION);
}

/**
 * Returns the HTTP status for an attempt.
 * @param attempt the number of the attempt, starting with 1
 */
export function simulatedStatus({ failCode, failCount }: Simulation, attempt: number): number {
  const failing = failCount ?? (failCode === undefined ? 0 : Number.POSITIVE_INFINITY);
  return attempt <= failing ? (failCode ?? DEFAULT_FAIL_CODE) : SUCCESS;
}

/**
 * An attempt in the retry schedule. Delays are in milliseconds after the previous attempt, and the first delay is 0.
 */
interface PlannedAttempt {
  readonly status: number;
  /** The minimum wait in production, which is the schedule without jitter. */
  readonly delayMs: number;
  /** The wait in production with the jitter of this attempt. */
  readonly jitteredDelayMs: number;
  /** The wait in the run. */
  readonly compressedDelayMs: number;
}

/** The expected course of a delivery, based on its simulation and the schedule of its endpoint. */
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
