import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { HOUR_MS, type Part, partKeys, recordsBucketOf } from '../keys.ts';
import { type Due, dueTimes, readDue, type SweepState } from './due.ts';

const script = (name: string) => readNamedScript(new URL(`${name}.lua`, import.meta.url));
const EXPIRE = script('expire');
const FORGET_IDS = script('forget-ids');
const FORGET_RECORDS = script('forget-records');
const FORGET_SLOT = script('forget-slot');
const TIDY = script('tidy');

/** The number of buckets that are freed by a call. */
const [IDS_AT_ONCE, RECORDS_AT_ONCE] = [24, 8];
/** Records may have been written before the first sweep of a part, but they can't be older than that. */
const BUCKETS_BEFORE = 4;
/** The buckets which contain the records of test events that are expiring now. */
const TEST_BUCKETS = 3;
/**
 * The largest error of the Redis clock without the risk of removing events too early, which is the minimum retention.
 */
const LARGEST_OFFSET_MS = HOUR_MS;

/** The work done by a single slice of a sweep. */
export interface Swept {
  /** The number of events that have been removed by retention. */
  readonly events: number;
  /** The number of deliveries that have ended as expired. */
  readonly expired: number;
  /** The number of events which have expired before they were routed, for each subscription. */
  readonly neverRouted: number;
}

export type SweepAnswer =
  | ({
      readonly answer: 'OK';
      /** There is more to do. You should call this again. */
      readonly more: boolean;
      /**
       * The time until the next work is due if the part remains idle and there is no more work now, in milliseconds.
       */
      readonly dueInMs: number | undefined;
    } & Swept)
  /** Nothing was removed because the Redis clock differs by this time from the clock of this machine. */
  | { readonly answer: 'CLOCK'; readonly offsetMs: number }
  | { readonly answer: 'GONE' };

/**
 * Removes a single batch of obsolete data from a part. Includes expired events, ids and records that are not used any
 * more, and the remains of deleted subscriptions. Can be called concurrently, with a separate `state` for each caller.
 */
export type Sweep = (part: Part, state: SweepState) => Promise<SweepAnswer>;

const NOTHING: Swept = { events: 0, expired: 0, neverRouted: 0 };

async function expire(redis: ScriptClient, part: Part, due: Due): Promise<Swept & { readonly more: boolean }> {
  const keys = partKeys(part);
  for (let bucket = recordsBucketOf(due.oldestMs ?? due.nowMs); ; ) {
    const call = { keys, listed: [keys.records(bucket)], args: { gen: part.gen, bucket } };
    const [word, ...counts] = (await callScript(redis, EXPIRE, call)) as [string, ...number[]];
    const [events = 0, expired = 0, neverRouted = 0, more] = counts;
    if (word !== 'BUCKET') return { events, expired, neverRouted, more: more === 1 };
    bucket = events;
  }
}

async function tidy(redis: ScriptClient, part: Part, due: Due, state: SweepState): Promise<Swept> {
  const keys = partKeys(part);
  const bucket = recordsBucketOf(due.nowMs - due.retentionMs) - TEST_BUCKETS + 1;
  const listed = Array.from({ length: TEST_BUCKETS }, (_, i) => keys.records(bucket + i));
  const args = { gen: part.gen, cursor: state.tidying ?? '0', bucket };
  const [, cursor, expired] = await callScript(redis, TIDY, { keys, listed, args });
  state.tidying = cursor === '' ? undefined : (cursor as string);
  return { ...NOTHING, expired: (expired as number | undefined) ?? 0 };
}

async function forgetIds(redis: ScriptClient, part: Part, first: number): Promise<void> {
  const keys = partKeys(part);
  const listed = Array.from({ length: IDS_AT_ONCE }, (_, i) => keys.ids(first + i));
  await callScript(redis, FORGET_IDS, { keys, listed, args: { gen: part.gen, first } });
}

async function forgetRecords(redis: ScriptClient, part: Part, due: Due): Promise<void> {
  const keys = partKeys(part);
  const oldestMs = Math.min(due.oldestMs ?? due.nowMs, due.nowMs);
  const first = due.firstRecords ?? recordsBucketOf(oldestMs) - BUCKETS_BEFORE;
  const listed = Array.from({ length: RECORDS_AT_ONCE }, (_, i) => keys.records(first + i));
  await callScript(redis, FORGET_RECORDS, { keys, listed, args: { gen: part.gen, first } });
}

/** @param wallMs the clock of this machine. Undefined if it is not compared to the Redis clock */
export function createSweep(redis: ScriptClient, wallMs?: () => number): Sweep {
  /** If there is nothing due, this is undefined. */
  async function sweepSlice(part: Part, due: Due, state: SweepState): Promise<Swept | undefined> {
    const { nowMs } = due;
    const times = dueTimes(due, state);
    if (times.expire <= nowMs) {
      const { more, ...swept } = await expire(redis, part, due);
      state.expiring = more;
      if (!more) state.expiredMs = nowMs;
      return swept;
    }
    if (state.expiring) state.expiredMs = nowMs;
    state.expiring = false;
    if (times.slot <= nowMs) {
      await callScript(redis, FORGET_SLOT, { keys: partKeys(part), args: { gen: part.gen } });
    } else if (times.ids <= nowMs) {
      await forgetIds(redis, part, due.firstHourOfIds as number);
    } else if (times.records <= nowMs) {
      await forgetRecords(redis, part, due);
    } else {
      return times.tidy <= nowMs ? tidy(redis, part, due, state) : undefined;
    }
    return NOTHING;
  }

  return async function sweep(part, state) {
    const due = await readDue(redis, part);
    if (due === undefined) return { answer: 'GONE' };
    const offsetMs = wallMs === undefined ? 0 : due.nowMs - wallMs();
    if (Math.abs(offsetMs) > LARGEST_OFFSET_MS) return { answer: 'CLOCK', offsetMs };
    const swept = await sweepSlice(part, due, state);
    if (swept !== undefined) return { answer: 'OK', more: true, dueInMs: undefined, ...swept };
    const nextMs = Math.min(...Object.values(dueTimes(due, state)));
    const dueInMs = Number.isFinite(nextMs) ? nextMs - due.nowMs : undefined;
    return { answer: 'OK', more: false, dueInMs, ...NOTHING };
  };
}
