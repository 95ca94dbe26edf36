import { type EventMeta, parseEventMeta } from '../../core/events/event-meta.ts';
import type { EventProgress } from '../../core/events/event-state.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys, recordsBucketOf } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';
import { eventIdOf } from '../log/event-id.ts';
import type { SlotOfPart } from './find-part.ts';
import { parseProgress } from './progress.ts';
import { inboxRefOf } from './ref-names.ts';

const DETAILS = readNamedScript(new URL('details.lua', import.meta.url));
/** The maximum number of deliveries in each call. */
const AT_ONCE = 64;

/** A delivery, using the part's refs. */
export interface PartDelivery {
  readonly ref: string;
  readonly replayId?: string | undefined;
}

/** The delivery state. */
export interface Details {
  /** Undefined for expired events and test events. */
  readonly event: { readonly groupKey: string; readonly meta: EventMeta; readonly bytes: number } | undefined;
  /** undefined: it never was here, or its record is too old. */
  readonly progress: EventProgress | undefined;
}

/**
 * Reads the details of deliveries. Returns at least the first one, using a single call to Redis. Call the function
 * again for the others.
 */
export type ReadDetails = (at: SlotOfPart, deliveries: readonly PartDelivery[]) => Promise<readonly Details[] | 'GONE'>;

/** The event metadata. If the producer didn't set an id, it contains the generated id. */
export function metaOfEvent(part: Part, ref: string, groupKey: string, text: string): EventMeta {
  const meta = parseEventMeta(text, groupKey, inboxRefOf(ref));
  return (meta.id as string | undefined) === undefined ? { ...meta, id: eventIdOf(part, ref) } : meta;
}

/** The keys for the records of refs, and the index of the key for each ref. */
export function recordKeysOf(part: Part, refs: readonly string[]): { listed: string[]; indexes: number[] } {
  const { records } = partKeys(part);
  const listed: string[] = [];
  const known = new Map<number, number>();
  const indexes = refs.map(ref => {
    const bucket = recordsBucketOf(msOfRef(ref));
    const index = known.get(bucket) ?? listed.push(records(bucket)) - 1;
    known.set(bucket, index);
    return index;
  });
  return { listed, indexes };
}

export function createReadDetails(redis: ScriptClient): ReadDetails {
  return async function readDetails({ part, slot }, deliveries) {
    const asked = deliveries.slice(0, AT_ONCE);
    if (asked.length === 0) return [];
    const { listed, indexes } = recordKeysOf(
      part,
      asked.map(({ ref }) => ref),
    );
    const [word, ...found] = await callScript(redis, DETAILS, {
      keys: partKeys(part),
      listed,
      args: { gen: part.gen, slot },
      more: asked.flatMap(({ ref, replayId }, i) => [ref, replayId ?? '', indexes[i] as number]),
    });
    if (word !== 'OK') return 'GONE';
    const all: Details[] = [];
    for (let at = 0; at < found.length; at += 4) {
      const [groupKey, meta, bytes, state] = found.slice(at, at + 4) as [string, string, string, string];
      const { ref } = asked[at / 4] as PartDelivery;
      all.push({
        event:
          bytes === '' ? undefined : { groupKey, meta: metaOfEvent(part, ref, groupKey, meta), bytes: Number(bytes) },
        progress: parseProgress(ref, state),
      });
    }
    return all;
  };
}
