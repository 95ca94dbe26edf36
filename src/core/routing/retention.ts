import { parseDurationMs } from '../../api/durations.ts';

/** The maximum retention in ms. Used if the actual retention is not known, so that nothing is removed too early. */
export const LONGEST_RETENTION_MS = parseDurationMs('720h');

/** Returns the retention of a stream in ms. If it can't be parsed, other streams must not be affected. */
export function retentionMsOf(retention: string): number {
  try {
    return parseDurationMs(retention);
  } catch {
    return LONGEST_RETENTION_MS;
  }
}
