import { RETRY_AFTER_MAX_MS } from './retry-after.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Waits after the 1st, 2nd, … failed attempt, in ms, when the endpoint names none: 5 s to 24 h, then dead letter. */
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

/** Jitter is only ever added, and at most this share: a retry is never early and at most 20 % late (invariant 18). */
export const MAX_JITTER = 0.2;

/**
 * When the next attempt is due, or `'dead'` when the schedule is used up.
 *
 * @param failures attempts that failed so far, this one included: 1 or more
 * @param randomUnit from 0 (inclusive) to 1 (exclusive), given by the caller
 * @param retryAfterMs what the endpoint asked for; it only ever lengthens the wait, up to 10 h
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
  // Retry-After is jittered too: an endpoint that sends the same date to everybody would be met by all at once.
  const jitterMs = Math.floor(waitMs * MAX_JITTER * failed.randomUnit);
  return { dueAtMs: Math.ceil(failed.nowMs + waitMs) + jitterMs };
}
