import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { HOUR_MS, type Part, partKeys, RECORDS_MS } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';

const DUE = readNamedScript(new URL('due.lua', import.meta.url));

/** Maximum retention. Used until the actual retention has been written by the controller. */
const LONGEST_RETENTION_MS = 720 * HOUR_MS;
/** The time for which ids are kept after the end of their bucket. The same as in `forget-ids.lua`. */
const IDS_KEPT_MS = 25 * HOUR_MS;
/** The maximum time for which records are kept after the end of their bucket. */
export const RECORDS_KEPT_MS = LONGEST_RETENTION_MS + RECORDS_MS;
const TIDY_EVERY_MS = 6 * HOUR_MS;
/** The minimum time between removals in a part with constantly expiring events. */
const EXPIRE_EVERY_MS = 60_000;
const NEVER = Number.POSITIVE_INFINITY;

/** The state of a part that is used by the sweep. All times are in milliseconds of the part's clock. */
export interface Due {
  readonly nowMs: number;
  readonly retentionMs: number;
  readonly oldestMs: number | undefined;
  readonly firstHourOfIds: number | undefined;
  readonly firstRecords: number | undefined;
  readonly tidiedMs: number | undefined;
  readonly droppedMs: number | undefined;
  readonly hasSlots: boolean;
}

/** The progress of a single sweep. If it is lost, the next sweep starts over. */
export interface SweepState {
  /** Events are currently being removed. Should be continued until none of them are expired. */
  expiring?: boolean;
  /** The time at which there were no events that were too old. */
  expiredMs?: number;
  /** The cursor for the next page of slots. */
  tidying?: string | undefined;
}

const numberOf = (text: unknown) => (text === '' ? undefined : Number.parseInt(text as string, 10));

/** If the part does not exist, or has another generation, this returns undefined. */
export async function readDue(redis: ScriptClient, part: Part): Promise<Due | undefined> {
  const call = { keys: partKeys(part), args: { gen: part.gen } };
  const [word, nowMs, retention, oldest, ids, records, tidied, dropped, hasSlots] = await callScript(redis, DUE, call);
  if (word !== 'OK') return undefined;
  return {
    nowMs: nowMs as number,
    retentionMs: numberOf(retention) ?? LONGEST_RETENTION_MS,
    oldestMs: oldest === '' ? undefined : msOfRef(oldest as string),
    firstHourOfIds: numberOf(ids),
    firstRecords: numberOf(records),
    tidiedMs: numberOf(tidied),
    droppedMs: numberOf(dropped),
    hasSlots: hasSlots === 1,
  };
}

/** Returns the time for which records are kept after the end of their bucket. The same as in `forget-records.lua`. */
function recordsKeptMs(retentionMs: number): number {
  return Math.min(2 * retentionMs, LONGEST_RETENTION_MS) + RECORDS_MS;
}

/** Returns the time at which each kind of work is due. */
export function dueTimes(due: Due, state: SweepState) {
  const { oldestMs, retentionMs, firstHourOfIds, firstRecords, tidiedMs } = due;
  const mayExpireMs = state.expiring ? 0 : (state.expiredMs ?? 0) + EXPIRE_EVERY_MS;
  const expire = oldestMs === undefined ? NEVER : Math.max(oldestMs + retentionMs + 1, mayExpireMs);
  // Events that have expired need their records until they are removed.
  const isOld = oldestMs !== undefined && oldestMs + retentionMs < due.nowMs;
  const records = firstRecords === undefined ? 0 : (firstRecords + 1) * RECORDS_MS + recordsKeptMs(retentionMs);
  return {
    expire,
    slot: due.droppedMs ?? NEVER,
    ids: firstHourOfIds === undefined ? NEVER : (firstHourOfIds + 1) * HOUR_MS + IDS_KEPT_MS,
    records: isOld ? Math.max(records, expire) : records,
    tidy: due.hasSlots || state.tidying !== undefined ? (tidiedMs ?? 0) + TIDY_EVERY_MS : NEVER,
  };
}
