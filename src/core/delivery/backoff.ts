import { RETRY_AFTER_MAX_MS } from './retry-after.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * The default waits after each failed attempt in milliseconds, from 5 s to 24 h. After the last wait, the event becomes
 * a dead letter.
 */
export const DEFAULT_RETRY_SCHEDULE_MS: readonly number[] = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

/**
 * The maximum share of jitter. Jitter is only added, so a retry is never early and is at most 20 % late (invariant 18).
 */
const MAX_JITTER = 0.2;

/**
 * Returns when the next attempt is due, or `'dead'` after the last step of the schedule.
 *
 * @param failures number of failed attempts so far, including this one: 1 or more
 * @param randomUnit from 0 (inclusive) to 1 (exclusive), given by the caller
 * @param retryAfterMs the endpoint's Retry-After; it only lengthens the wait, up to 10 h
 * @returns `dueAtMs` in whole ms since the epoch
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
  // Jitter is also added to Retry-After. Otherwise, an endpoint that sends the same date to all clients would receive
  // all retries at the same time.
  const jitterMs = Math.floor(waitMs * MAX_JITTER * failed.randomUnit);
  return { dueAtMs: Math.ceil(failed.nowMs + waitMs) + jitterMs };
}
