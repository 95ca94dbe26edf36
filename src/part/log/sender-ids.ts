import { hash } from 'node:crypto';
import type { partKeys } from '../keys.ts';

/**
 * The number of past hours that may contain a producer's id, including one hour for clock differences, and of future
 * hours. sender-ids.lua has the same numbers.
 */
const [HOURS_BEFORE, HOURS_AFTER] = [25, 1];

/**
 * Returns the keys for the ids of producers which are used as `ids*` in scripts, given the hour of the caller's clock.
 */
export function idKeysAround({ ids }: ReturnType<typeof partKeys>, hour: number): string[] {
  return Array.from({ length: HOURS_BEFORE + 1 + HOURS_AFTER }, (_, i) => ids(hour - HOURS_BEFORE + i));
}

/** 16 bytes of SHA-256 of the event id, used for deduplication. Computed from hex, which is four times faster. */
export function hashOfEventId(id: string): Buffer {
  return Buffer.from(hash('sha256', id, 'hex').slice(0, 32), 'hex');
}
