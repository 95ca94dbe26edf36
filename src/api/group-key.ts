import { z } from 'zod';
import { withRule } from './rules.ts';

/** The maximum size of a group key in bytes of UTF-8. */
const GROUP_KEY_MAX_BYTES = 256;

// \p{Cc} matches control characters, and \p{Z} matches spaces and line separators. RE2 (CEL) and JavaScript use the
// same definitions.
const GROUP_KEY = /^[^\p{Cc}\p{Z}]([^\p{Cc}]*[^\p{Cc}\p{Z}])?$/u;

/**
 * Returns whether `value` is a valid group key. A group key has 1 to 256 bytes of UTF-8 and does not contain control
 * characters, leading spaces or trailing spaces. Redis uses NUL as a separator. Keys are compared byte by byte. Lone
 * surrogates are rejected because they cannot be encoded in UTF-8.
 */
export function isGroupKey(value: string): boolean {
  return value.isWellFormed() && GROUP_KEY.test(value) && new TextEncoder().encode(value).length <= GROUP_KEY_MAX_BYTES;
}

/** Returns the schema of a group key. */
export function groupKey(): z.ZodString {
  return withRule(z.string().min(1).max(GROUP_KEY_MAX_BYTES), {
    rule: `bytes(self).size() <= ${GROUP_KEY_MAX_BYTES} && self.matches(r'${GROUP_KEY.source}')`,
    message: 'must be 1 to 256 bytes of UTF-8 without control characters and without leading or trailing spaces',
    holds: isGroupKey,
  });
}
