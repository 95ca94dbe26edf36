import { z } from 'zod';
import { withRule } from './rules.ts';

/** The maximum size of a group key in UTF-8 bytes. */
const GROUP_KEY_MAX_BYTES = 256;

// \p{Cc} stands for control characters, and \p{Z} for spaces and line separators. RE2 (CEL) and JavaScript agree on
// both.
const GROUP_KEY = /^[^\p{Cc}\p{Z}]([^\p{Cc}]*[^\p{Cc}\p{Z}])?$/u;

/**
 * Returns true if `value` is a valid group key. A group key is 1 to 256 bytes of UTF-8 without control characters, and
 * without leading or trailing spaces. We can't allow NUL because it is used as a separator in Redis. Keys are compared
 * byte by byte. We also need to reject lone surrogates because they can't be encoded in UTF-8.
 */
export function isGroupKey(value: string): boolean {
  return value.isWellFormed() && GROUP_KEY.test(value) && new TextEncoder().encode(value).length <= GROUP_KEY_MAX_BYTES;
}

/** Returns the schema for a group key. */
export function groupKey(): z.ZodString {
  return withRule(z.string().min(1).max(GROUP_KEY_MAX_BYTES), {
    rule: `bytes(self).size() <= ${GROUP_KEY_MAX_BYTES} && self.matches(r'${GROUP_KEY.source}')`,
    message: 'must be 1 to 256 bytes of UTF-8 without control characters and without leading or trailing spaces',
    holds: isGroupKey,
  });
}
