import { createHash } from 'node:crypto';

/**
 * Returns a pseudorandom number from 0 (inclusive) to 1 (exclusive), derived from the input so that a restart or a
 * report will arrive at the same value.
 */
export function jitterOf(...parts: readonly (string | number)[]): number {
  return createHash('sha256').update(parts.join('\0')).digest().readUInt32BE(0) / 2 ** 32;
}
