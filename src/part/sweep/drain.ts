import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { HOUR_MS, type Part, partKeys, recordsBucketOf } from '../keys.ts';
import { RECORDS_KEPT_MS } from './due.ts';

const DRAIN = readNamedScript(new URL('drain.lua', import.meta.url));
const REMOVE = readNamedScript(new URL('remove.lua', import.meta.url));
const REMOVE_IDS = readNamedScript(new URL('remove-ids.lua', import.meta.url));
/**
 * The number of hours before and after now for which a part can have ids. If the clock was set back, they are later.
 */
const [HOURS_BEFORE, HOURS_AFTER] = [50, 50];
/** The number of buckets that are removed by a call. */
const BUCKETS_AT_ONCE = 32;

/**
 * The work that is left for a stream that is being deleted, in one of its parts. If there are no events, all of them
 * are 0.
 */
export interface PartDrain {
  /**
   * The number of subscriptions for which not everything has been routed. If the part is being held back, this is
   * increased by one.
   */
  readonly unrouted: number;
  /**
   * The number of deliveries that are open. Does not include those to deleted subscriptions, because they are only kept
   * as records.
   */
  readonly open: number;
}

export interface Drain {
  /** All 0 if the part was removed. */
  readonly read: (part: Part) => Promise<PartDrain>;
  /**
   * Removes a part and everything it contains. Includes old generations. You need to report its tokens and counts
   * first. Can be repeated.
   */
  readonly remove: (part: Part, fence: number, nowMs: number) => Promise<'OK' | 'FENCED'>;
}

export function createDrain(redis: ScriptClient): Drain {
  return {
    async read(part) {
      let [unrouted, kept] = [0, 0];
      let cursor = '0';
      for (;;) {
        const call = { keys: partKeys(part), args: { gen: part.gen, cursor } };
        const [word, next, behind, held, open, ofDeleted] = await callScript(redis, DRAIN, call);
        if (word !== 'OK') return { unrouted: 0, open: 0 };
        unrouted += behind as number;
        kept += ofDeleted as number;
        cursor = next as string;
        if (cursor === '0')
          return { unrouted: unrouted + (held as number), open: Math.max(0, (open as number) - kept) };
      }
    },

    async remove(part, fence, nowMs) {
      const keys = partKeys(part);
      const last = recordsBucketOf(nowMs) + 1;
      for (let from = recordsBucketOf(nowMs - RECORDS_KEPT_MS) - 1; from <= last; from += BUCKETS_AT_ONCE) {
        const listed = Array.from({ length: BUCKETS_AT_ONCE }, (_, i) => keys.records(from + i));
        const [word] = await callScript(redis, REMOVE, { keys, listed, args: { fence, gen: part.gen } });
        if (word === 'FENCED') return word;
      }
      const hour = Math.floor(nowMs / HOUR_MS);
      const listed: string[] = [];
      for (let at = hour - HOURS_BEFORE; at <= hour + HOURS_AFTER; at++) listed.push(keys.ids(at));
      const [word] = await callScript(redis, REMOVE_IDS, { keys, listed, args: { fence, gen: part.gen } });
      return word as 'OK' | 'FENCED';
    },
  };
}
