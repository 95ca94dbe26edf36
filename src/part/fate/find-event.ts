import type { FoundEvent, RoutingReader } from '../../plane/routing-reader.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript } from '../call.ts';
import { metaOfEvent } from '../inbox/details.ts';
import { type PartClient, readPart } from '../inbox/find-part.ts';
import { inboxRefOf, partRefOf } from '../inbox/ref-names.ts';
import { HOUR_MS, type Part, partKeys } from '../keys.ts';
import { streamIdOf } from '../lanes/ref.ts';
import { parseEventId } from '../log/event-id.ts';
import { hashOfEventId, idKeysAround } from '../log/sender-ids.ts';

const FIND_EVENT = readNamedScript(new URL('find-event.lua', import.meta.url));

/**
 * Creates a function that looks for an event in a stream. If an id was provided by the producer, it can be found for 24
 * hours. All others can be found for as long as the event is stored. Only two commands are needed for a search, because
 * a producer may have many streams that need to be searched.
 */
export function createFindEvent(redis: PartClient, nowMs: () => number): RoutingReader['findEvent'] {
  /** @param id hash of the producer's id, or a ref */
  async function find(part: Part, id: string | Buffer): Promise<FoundEvent | undefined> {
    const keys = partKeys(part);
    const hour = Math.floor(nowMs() / HOUR_MS);
    const args = { gen: part.gen, id, hour };
    const ask = (lastHour?: number) =>
      callScript(redis, FIND_EVENT, { keys, listed: idKeysAround(keys, hour, lastHour), args });
    let [word, ...event] = await ask();
    // After the clock was set back, there are ids of later hours.
    if (word === 'CLOCK') [word, ...event] = await ask(event[0] as number);
    return word !== 'OK' || event.length === 0 ? undefined : foundEvent(part, event as string[]);
  }

  return async (tenant, queue, wanted) => {
    const part = await readPart(redis, tenant, queue);
    if (part === undefined) return undefined;
    if ('ref' in wanted) {
      const ref = partRefOf(wanted.ref);
      return ref === undefined ? undefined : find(part, ref);
    }
    const { eventId } = wanted;
    // Generated ids contain the ref. If the producer has provided another id for this event, it does not have this id.
    const ref = parseEventId(eventId, part)?.ref;
    const found = await find(part, ref ?? hashOfEventId(eventId));
    return found?.meta.id === eventId ? found : undefined;
  };
}

function foundEvent(part: Part, [ref = '', groupKey = '', meta = '', bytes]: readonly string[]): FoundEvent {
  return {
    ref: inboxRefOf(ref),
    id: streamIdOf(ref),
    meta: metaOfEvent(part, ref, groupKey, meta),
    bytes: Number(bytes),
  };
}
