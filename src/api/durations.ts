import { z } from 'zod';
import { withPattern, withRule } from './rules.ts';

/**
 * Go duration strings, restricted as in the Kubernetes Gateway API (GEP-2257). A duration consists of up to four whole
 * numbers with at most five digits, each followed by one of the units `h`, `m`, `s`, or `ms`, which prevents overflows
 * in Go, CEL, and JavaScript.
 */
const DURATION_PATTERN = /^([0-9]{1,5}(h|m|s|ms)){1,4}$/;

const IS_DURATION = `self.matches(r"${DURATION_PATTERN.source}")`;

const UNIT_MS: ReadonlyMap<string | undefined, number> = new Map([
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
]);

/**
 * Parses a duration string to milliseconds, e.g. `parseDurationMs('1h30m')` will return 5,400,000.
 * @throws RangeError if the string is not a valid duration
 */
export function parseDurationMs(value: string): number {
  if (!DURATION_PATTERN.test(value))
    throw new RangeError(`not a valid duration: ${value}. Use a value such as 5s, 30m or 1h30m`);
  let totalMs = 0;
  for (const [, digits, unit] of value.matchAll(/([0-9]+)(ms|h|m|s)/g)) {
    totalMs += Number(digits) * (UNIT_MS.get(unit) ?? 0);
  }
  return totalMs;
}

/** Returns the schema for a duration string such as `5s`, `30m` or `168h`. */
export function duration(): z.ZodString {
  const message = 'must be a duration such as 5s, 30m or 168h, in h, m, s and ms, not in days';
  return withPattern(z.string().max(32), DURATION_PATTERN, message);
}

/** Returns the schema for a duration string that must be between `min` and `max` (inclusive). */
export function durationBetween(min: string, max: string): z.ZodString {
  const [minMs, maxMs] = [parseDurationMs(min), parseDurationMs(max)];
  return withRule(duration(), {
    rule: `!${IS_DURATION} || (duration(self) >= duration('${min}') && duration(self) <= duration('${max}'))`,
    message: `must be from ${min} to ${max}`,
    // For invalid values, the rule in `duration()` reports the error.
    holds: value => !DURATION_PATTERN.test(value) || between(parseDurationMs(value), minMs, maxMs),
  });
}

function between(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}
