import { RETRY_AFTER_MAX_MS } from './retry-after.ts';

/**
 * The maximum share of jitter. Since jitter is only ever added, a retry will never be early, and at most 20 % late
 * (invariant 18).
 */
const MAX_JITTER = 0.2;

/**
 * Returns the time of the next attempt, or `'dead'` after the last step of the schedule.
 *
 * @param failures number of failed attempts so far, including this one. Must be at least 1
 * @param randomUnit from 0 (inclusive) to 1 (exclusive), given by the caller
 * @param retryAfterMs the endpoint's Retry-After, which can only lengthen the wait, up to 10 h
 * @returns `dueAtMs` as a whole number of milliseconds since the epoch
 */
export function nextAttempt(failed: {
  schedule: readonly number[];
  failures: number;
  randomUnit: number;
  retryAfterMs?: number | undefined;
  nowMs: number;
}): { dueAtMs: number } | 'dead' {
  const scheduledMs = failed.schedule[failed.failures - 1];
  if (scheduledMs === undefined) return 'dead';
  const askedMs = Math.min(failed.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS);
  const waitMs = Math.max(scheduledMs, askedMs);
  // We also need to add jitter to Retry-After. If an endpoint sends the same date to all of its clients, it would
  // otherwise receive all retries at the same time.
  const jitterMs = Math.floor(waitMs * MAX_JITTER * failed.randomUnit);
  return { dueAtMs: Math.ceil(failed.nowMs + waitMs) + jitterMs };
}
