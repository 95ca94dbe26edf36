import { createHash } from 'node:crypto';

/**
 * A share from 0 (inclusive) to 1 (exclusive) that looks random and follows from what it is of: whoever asks again, after
 * a restart or in a report, gets the same.
 */
export function jitterOf(...parts: readonly (string | number)[]): number {
  return createHash('sha256').update(parts.join('\0')).digest().readUInt32BE(0) / 2 ** 32;
}
