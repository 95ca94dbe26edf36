import { nextAttempt } from './backoff.ts';

/** The responses of the simulated endpoint to an event in a sandbox run. When empty, every attempt succeeds. */
export interface Simulation {
  /** HTTP status of failed attempts, from 300 to 599. */
  readonly failCode?: number;
  /** The number of attempts that should fail (from 0 to 20). If only the code is set, all attempts fail. */
  readonly failCount?: number;
}

/** Failure status if no code is set. */
const DEFAULT_FAIL_CODE = 500;
const SUCCESS = 200;

/**
 * The factor by which waits in the sandbox are shorter than in production. For example, an hour takes a tenth of a
 * second.
 */
export const COMPRESSION = 36_000;

/**
 * Converts a wait of `delayMs` in production to the wait that should be used in a sandbox run, in whole milliseconds.
 * Any wait in production results in at least 1.
 */
export function compressDelay(delayMs: number): number {
  return Math.ceil(delayMs / COMPRESSION);
}

/**
 * Returns the HTTP status to use for an attempt.
 * @param attempt number of the attempt, starting with 1
 */
export function simulatedStatus({ failCode, failCount }: Simulation, attempt: number): number {
  const failing = failCount ?? (failCode === undefined ? 0 : Number.POSITIVE_INFINITY);
  return attempt <= failing ? (failCode ?? DEFAULT_FAIL_CODE) : SUCCESS;
}

/**
 * An attempt in the retry schedule. All delays are in milliseconds since the previous attempt. The first delay is
 * always 0.
 */
interface PlannedAttempt {
  readonly status: number;
  /** The minimum time to wait in production: the schedule without jitter. */
  readonly delayMs: number;
  /** Wait in production, including this attempt's jitter. */
  readonly jitteredDelayMs: number;
  /** Wait in the run. */
  readonly compressedDelayMs: number;
}

/** The expected course of a delivery, based on its simulation and the schedule of its endpoint. */
interface DeliveryPlan {
  readonly outcome: 'delivered' | 'dead';
  readonly attempts: readonly PlannedAttempt[];
}

/**
 * Returns all attempts of a delivery, in order.
 *
 * @param retryMs the endpoint's delays after the 1st, 2nd, … failed attempt, in ms
 * @param jitterOf returns the share of jitter after the n-th failed attempt, from 0 to 1. Should be the same as in the
 *   run
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
