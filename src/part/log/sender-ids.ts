import { hash } from 'node:crypto';
import type { partKeys } from '../keys.ts';

/**
 * The number of past hours that may contain a producer's id, including one hour for clock differences, and of future
 * hours, at least and at most. sender-ids.lua has the same numbers.
 */
const [HOURS_BEFORE, HOURS_AFTER, MOST_AFTER] = [25, 1, 49];

/**
 * Returns the keys for the ids of producers which are used as `ids*` in scripts, given the hour of the caller's clock.
 *
 * @param lastHour the last hour that may contain ids, if the clock was set back
 */
export function idKeysAround({ ids }: ReturnType<typeof partKeys>, hour: number, lastHour = 0): string[] {
  const after = Math.min(Math.max(HOURS_AFTER, lastHour - hour), MOST_AFTER);
  return Array.from({ length: HOURS_BEFORE + 1 + after }, (_, i) => ids(hour - HOURS_BEFORE + i));
}

/** 16 bytes of SHA-256 of the event id, used for deduplication. Computed from hex, which is four times faster. */
export function hashOfEventId(id: string): Buffer {
  return Buffer.from(hash('sha256', id, 'hex').slice(0, 32), 'hex');
}
