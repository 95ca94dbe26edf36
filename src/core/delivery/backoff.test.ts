import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseDurationMs } from '../../api/durations.ts';
import { ENDPOINT_DEFAULTS } from '../../api/endpoint.ts';
import { nextAttempt } from './backoff.ts';
import { RETRY_AFTER_MAX_MS } from './retry-after.ts';

const schedule = ENDPOINT_DEFAULTS.retrySchedule.map(parseDurationMs);

const due = (failures: number, retryAfterMs: number) =>
  nextAttempt({ schedule, failures, randomUnit: 0, retryAfterMs, nowMs: 0 });

describe('nextAttempt', () => {
  test('waits 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, and then creates a dead letter', () => {
    const waits = Array.from({ length: 10 }, (_, i) => {
      const next = nextAttempt({ schedule, failures: i + 1, randomUnit: 0, nowMs: 1000 });
      return next === 'dead' ? next : (next.dueAtMs - 1000) / 1000;
    });
    expect(waits).toEqual([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400, 'dead']);
  });

  test('Retry-After increases a delay up to 10 h, and never reduces it', () => {
    expect(due(1, 60_000)).toEqual({ dueAtMs: 60_000 });
    expect(due(2, 60_000)).toEqual({ dueAtMs: 300_000 });
    expect(due(1, Number.MAX_SAFE_INTEGER)).toEqual({ dueAtMs: RETRY_AFTER_MAX_MS });
    expect(due(9, Number.MAX_SAFE_INTEGER)).toEqual({ dueAtMs: 86_400_000 });
  });

  test('Retry-After does not add attempts, and an empty schedule has a single attempt', () => {
    expect(nextAttempt({ schedule, failures: 10, randomUnit: 0, retryAfterMs: 1, nowMs: 0 })).toBe('dead');
    expect(nextAttempt({ schedule: [], failures: 1, randomUnit: 0, nowMs: 0 })).toBe('dead');
  });

  test('is never early, and late by at most 20 %, in whole milliseconds', () => {
    fc.assert(
      fc.property(
        fc.record({
          schedule: fc.array(fc.integer({ min: 0, max: 720 * 3_600_000 }), { minLength: 1, maxLength: 16 }),
          failures: fc.integer({ min: 1, max: 16 }),
          randomUnit: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
          retryAfterMs: fc.option(fc.integer({ min: 0 }), { nil: undefined }),
          nowMs: fc.integer({ min: 0, max: 4e12 }),
        }),
        failed => {
          const scheduledMs = failed.schedule[failed.failures - 1];
          const next = nextAttempt(failed);
          expect(next === 'dead').toBe(scheduledMs === undefined);
          if (scheduledMs === undefined || next === 'dead') return true;
          const waitMs = Math.max(scheduledMs, Math.min(failed.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
          const earliestMs = failed.nowMs + waitMs;
          const { dueAtMs } = next;
          return Number.isSafeInteger(dueAtMs) && dueAtMs >= earliestMs && dueAtMs <= earliestMs + waitMs * 0.2;
        },
      ),
    );
  });

  test('jitter is distributed', () => {
    const spread = [0, 0.5, 0.999].map(randomUnit => nextAttempt({ schedule, failures: 2, randomUnit, nowMs: 0 }));
    expect(spread).toEqual([{ dueAtMs: 300_000 }, { dueAtMs: 330_000 }, { dueAtMs: 359_940 }]);
  });

  test('endpoints that send the same Retry-After to all clients do not receive all retries at the same time', () => {
    const next = nextAttempt({ schedule, failures: 1, randomUnit: 0.5, retryAfterMs: 60_000, nowMs: 0 });
    expect(next).toEqual({ dueAtMs: 66_000 });
  });
});
