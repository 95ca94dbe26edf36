import { z } from 'zod';
import { withRule } from './rules.ts';

/** Maximum size of a group key in bytes of UTF-8. */
const GROUP_KEY_MAX_BYTES = 256;

// \p{Cc} are the control characters, \p{Z} the spaces and line separators. RE2 (CEL) and JavaScript agree on both.
const GROUP_KEY = /^[^\p{Cc}\p{Z}]([^\p{Cc}]*[^\p{Cc}\p{Z}])?$/u;

/**
 * Returns whether `value` is a valid group key: 1 to 256 bytes of UTF-8, no control characters (a NUL separates it in
 * Redis), no space at either end. Keys are compared byte by byte. Lone surrogates have no UTF-8 and are refused.
 */
export function isGroupKey(value: string): boolean {
  return value.isWellFormed() && GROUP_KEY.test(value) && new TextEncoder().encode(value).length <= GROUP_KEY_MAX_BYTES;
}

/** Returns the schema of a group key. */
export function groupKey(): z.ZodString {
  return withRule(z.string().min(1).max(GROUP_KEY_MAX_BYTES), {
    rule: `bytes(self).size() <= ${GROUP_KEY_MAX_BYTES} && self.matches(r'${GROUP_KEY.source}')`,
    message: 'must be 1 to 256 bytes of UTF-8 without control characters and without spaces at its ends',
    holds: isGroupKey,
  });
}
