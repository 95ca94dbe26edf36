import { z } from 'zod';
import { withPattern, withRule } from './rules.ts';

/** The message for a text that is not a date and time. */
export const MUST_BE_TIME = 'must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z';

/**
 * Returns the schema for a text with `min` to `max` characters. Kubernetes counts code points whereas zod counts UTF-16
 * units, so we use a check for code points and put the limits into the JSON Schema.
 */
export function text(limits: { min?: number; max: number }): z.ZodString {
  const min = limits.min ?? 0;
  return z
    .string()
    .refine(value => {
      const length = codePoints(value);
      return length >= min && length <= limits.max;
    }, `must have ${min} to ${limits.max} characters`)
    .meta(min > 0 ? { minLength: min, maxLength: limits.max } : { maxLength: limits.max });
}

// RE2 (CEL) and JavaScript agree on these classes: control characters, line and paragraph separators, spaces, and
// invisible characters for formatting.
const LINE_BREAK = /[\p{Cc}\p{Zl}\p{Zp}]/u;
const VISIBLE = /[^\p{Z}\p{Cc}\p{Cf}]/u;

/** Returns the schema for a name that is shown to users, with `min` to `max` characters on a single line. */
export function displayName(limits: { min?: number; max: number }): z.ZodString {
  const oneLine = withRule(text(limits), {
    rule: `!self.matches(r'${LINE_BREAK.source}')`,
    message: 'must not contain line breaks, tabs or other control characters: remove them',
    holds: value => !LINE_BREAK.test(value),
  });
  return withRule(oneLine, {
    rule: `self.matches(r'${VISIBLE.source}')`,
    message: 'must contain at least one visible character such as a letter or digit',
    holds: value => VISIBLE.test(value),
  });
}

function codePoints(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

/** Returns the schema for 1 to `max` visible ASCII characters. Spaces and control characters are not included. */
export function visibleAscii(max: number, example: string): z.ZodString {
  const message = `must consist of visible ASCII characters, without spaces, such as ${example}`;
  return withPattern(z.string().min(1).max(max), /^[!-~]+$/, message);
}

/** Returns the schema for the object name, which is a DNS label (RFC 1123) with at most 63 characters. */
export function objectName(): z.ZodString {
  const message =
    'must consist of lowercase letters, digits and hyphens, with a letter or digit at both ends, such as shop-1';
  return withPattern(z.string().min(1).max(63), /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, message);
}

/** Returns the schema for a SHA-256 hash, written as 64 lowercase hexadecimal characters. */
export function sha256Hex(): z.ZodString {
  const message = 'must be 64 lowercase hexadecimal digits, as printed by sha256sum';
  return withPattern(z.string().max(64), /^[0-9a-f]{64}$/, message);
}

/**
 * The API server also accepts offsets such as `+24:00` and text behind another `T` for the format `date-time`, but
 * JavaScript can't parse them.
 */
const RFC_3339 =
  /^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$/;

/** Returns the schema for a date and time in RFC 3339 format, which `Date.parse` can always parse. */
export function timestamp(): z.ZodString {
  return z
    .string()
    .regex(RFC_3339, MUST_BE_TIME)
    .refine(value => !Number.isNaN(Date.parse(value)), MUST_BE_TIME)
    .meta({ format: 'date-time' });
}

const EMAIL =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

/**
 * Returns the schema for an email address (WHATWG HTML, "valid e-mail address") of at most 254 characters (RFC 5321).
 */
export function emailAddress(): z.ZodString {
  return withRule(z.string().min(3).max(254), {
    rule: `self.matches(r"${EMAIL.source.replaceAll('\\/', '/')}")`,
    message: 'must be an email address such as ada@example.com',
    holds: value => EMAIL.test(value),
  });
}
