import { z } from 'zod';
import { withRule } from './rules.ts';

/**
 * Go's duration strings as Kubernetes' Gateway API narrows them (GEP-2257): up to four whole numbers of at most five
 * digits, each with a unit `h`, `m`, `s` or `ms`. Narrow enough that no value overflows in Go, CEL or JavaScript.
 */
export const DURATION_PATTERN = /^([0-9]{1,5}(h|m|s|ms)){1,4}$/;

const UNIT_MS: ReadonlyMap<string | undefined, number> = new Map([
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
]);

/** Milliseconds of a duration string: `parseDurationMs('1h30m')` is 5,400,000. Throws a RangeError on anything else. */
export function parseDurationMs(value: string): number {
  if (!DURATION_PATTERN.test(value)) throw new RangeError(`not a duration such as 5s, 30m or 1h30m: ${value}`);
  let totalMs = 0;
  for (const [, digits, unit] of value.matchAll(/([0-9]+)(ms|h|m|s)/g)) {
    totalMs += Number(digits) * (UNIT_MS.get(unit) ?? 0);
  }
  return totalMs;
}

/** A duration string, `5s`, `30m`, `168h`. */
export function duration(): z.ZodString {
  return z.string().max(32).regex(DURATION_PATTERN, 'has to be a duration such as 5s, 30m or 168h');
}

/** A duration string from `min` to `max`, both included. */
export function durationBetween(min: string, max: string): z.ZodString {
  const [minMs, maxMs] = [parseDurationMs(min), parseDurationMs(max)];
  return withRule(duration(), {
    rule: `duration(self) >= duration('${min}') && duration(self) <= duration('${max}')`,
    message: `has to be from ${min} to ${max}`,
    // The pattern reports what is no duration at all.
    holds: value => !DURATION_PATTERN.test(value) || between(parseDurationMs(value), minMs, maxMs),
  });
}

function between(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}
