import { z } from 'zod';
import { withRule } from './rules.ts';

/**
 * Go's duration strings, restricted as in Kubernetes' Gateway API (GEP-2257): up to four whole numbers of at most five
 * digits, each with a unit `h`, `m`, `s` or `ms`. No value overflows in Go, CEL or JavaScript.
 */
const DURATION_PATTERN = /^([0-9]{1,5}(h|m|s|ms)){1,4}$/;

const IS_DURATION = `self.matches(r"${DURATION_PATTERN.source}")`;

const UNIT_MS: ReadonlyMap<string | undefined, number> = new Map([
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
]);

/** Parses a duration string to ms: `parseDurationMs('1h30m')` is 5,400,000. @throws RangeError on anything else */
export function parseDurationMs(value: string): number {
  if (!DURATION_PATTERN.test(value)) throw new RangeError(`not a duration such as 5s, 30m or 1h30m: ${value}`);
  let totalMs = 0;
  for (const [, digits, unit] of value.matchAll(/([0-9]+)(ms|h|m|s)/g)) {
    totalMs += Number(digits) * (UNIT_MS.get(unit) ?? 0);
  }
  return totalMs;
}

/**
 * Returns the schema of a duration string: `5s`, `30m`, `168h`. The pattern is for OpenAPI only. The API server checks
 * a rule instead, because it answers a broken pattern with the pattern, and a broken rule with its message.
 */
export function duration(): z.ZodString {
  return withRule(z.string().max(32).meta({ pattern: DURATION_PATTERN.source }), {
    rule: IS_DURATION,
    message: 'must be a duration such as 5s, 30m or 168h, in h, m, s and ms, not in days',
    holds: value => DURATION_PATTERN.test(value),
  });
}

/** Returns the schema of a duration string from `min` to `max`, both included. */
export function durationBetween(min: string, max: string): z.ZodString {
  const [minMs, maxMs] = [parseDurationMs(min), parseDurationMs(max)];
  return withRule(duration(), {
    rule: `!${IS_DURATION} || (duration(self) >= duration('${min}') && duration(self) <= duration('${max}'))`,
    message: `must be from ${min} to ${max}`,
    // The rule in `duration()` reports a malformed value.
    holds: value => !DURATION_PATTERN.test(value) || between(parseDurationMs(value), minMs, maxMs),
  });
}

function between(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}
