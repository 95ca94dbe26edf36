import { createHash } from 'node:crypto';

/**
 * Returns a share from 0 (inclusive) to 1 (exclusive) that looks random but derives from its input: a restart or a
 * report computes the same value.
 */
export function jitterOf(...parts: readonly (string | number)[]): number {
  return createHash('sha256').update(parts.join('\0')).digest().readUInt32BE(0) / 2 ** 32;
}
