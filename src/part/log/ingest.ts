import type { Argument, Reply } from '../../redis/client.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { HOUR_MS, type Part, partKeys } from '../keys.ts';
import { NO_REF } from '../lanes/ref.ts';
import { bytesInHash } from './body-pieces.ts';
import { parseEventId } from './event-id.ts';
import { hashOfEventId, idKeysAround } from './sender-ids.ts';

const INGEST = readNamedScript(new URL('ingest.lua', import.meta.url));
/** The events of a single call. */
const MOST = 64;

export interface PartEvent {
  /** Id set by the producer. Absent for generated ids, which are derived from the ref (`event-id.ts`). */
  readonly senderId?: string | undefined;
  /** If there is none, this is ''. Such events are not routed. */
  readonly groupKey: string;
  /** JSON. If the producer has provided an id, it starts with this id: `{"i":…`. */
  readonly meta: string;
  readonly body: Buffer;
}

export type EventAnswer =
  | { readonly answer: 'OK' | 'DUP'; readonly ref: string }
  /**
   * FULL: the stream's quota is exceeded. RESERVED: the producer's id looks like a generated id, but no event has it.
   */
  | { readonly answer: 'FULL' | 'RESERVED' }
  /** The part may store fewer bytes than this event costs. The account may have more (`space/ingest-within.ts`). */
  | { readonly answer: 'LIMIT'; readonly cost: number };

/** The settings of a part that change without a new `cfgv`, and its stored bytes, at the time of a call. */
export interface PartNow {
  /** The workspace's account. Empty if there is no account. */
  readonly payer: string;
  /** The number of events per second that ingress accepts for this account. Undefined if there is no limit. */
  readonly eventsPerSecond: number | undefined;
  readonly bytes: number;
}

export type IngestAnswer =
  | {
      readonly answer: 'OK';
      /** The time of the part's clock. */
      readonly nowMs: number;
      /**
       * The results for the first events. If there is no result for an event, it was not stored, because the call would
       * have had to do too much.
       */
      readonly events: readonly EventAnswer[];
      /** The number of references to which the events have been routed in the same step. */
      readonly references: number;
      /** The number of events whose group key is not active for any of the integrations. */
      readonly inactive: number;
      readonly partNow: PartNow;
    }
  | { readonly answer: 'GONE' | 'STALE' | 'CLOSED' };

/**
 * Stores and routes up to 64 events (with up to 1 MiB in total) in a single step. `cfgv` is the version of the
 * configuration used to parse them.
 */
export type Ingest = (part: Part, cfgv: string, events: readonly PartEvent[]) => Promise<IngestAnswer>;

/**
 * Returns the key for deduplication: 16 bytes of SHA-256, computed from hex, which is four times faster.
 *
 * If the producer id has the format of a generated id (`event-id.ts`), it refers to an event of this stream. For
 * this reason, it can't be used for another event. It is a duplicate if the log contains this event, and RESERVED if it
 * doesn't or if that event has an id from its producer. Generated ids for other streams are treated in the same way as
 * any other id.
 */
function nameOf(part: Part, senderId: string | undefined): Buffer | string {
  if (senderId === undefined) return '';
  const own = parseEventId(senderId, part);
  if (own === undefined) return hashOfEventId(senderId);
  // There is no event with this id in this part.
  return own.part === part.number ? own.ref : NO_REF;
}

const WORDS = { O: 'OK', D: 'DUP', F: 'FULL', R: 'RESERVED', L: 'LIMIT' } as const;

function readLine(line: string): EventAnswer {
  const answer = WORDS[line[0] as keyof typeof WORDS];
  if (answer === 'LIMIT') return { answer, cost: Number(line.slice(1)) };
  return answer === 'OK' || answer === 'DUP' ? { answer, ref: line.slice(1) } : { answer };
}

function readPartNow([bytes, payer, perSecond]: readonly Reply[]): PartNow {
  const eventsPerSecond = perSecond === '' ? undefined : Number(perSecond);
  return { payer: payer as string, eventsPerSecond, bytes: bytes as number };
}

export function createIngest(redis: ScriptClient, nowMs: () => number = Date.now): Ingest {
  /** The number of hours that the part clock is ahead. */
  let ahead = 0;
  /** The last hour for which a part has ids. After a clock was set back, it is in the future. */
  let lastHour = 0;
  return async function ingest(part, cfgv, events) {
    if (events.length > MOST) throw new RangeError(`${events.length} events in one call`);
    const keys = partKeys(part);
    const named = events.some(({ senderId }) => senderId !== undefined);
    const more: Argument[] = [];
    for (const { senderId, groupKey, meta, body } of events) {
      const cut = bytesInHash(body.length);
      const isWhole = cut === body.length;
      more.push(nameOf(part, senderId), groupKey, meta);
      more.push(isWhole ? body : body.subarray(0, cut), isWhole ? '' : body.subarray(cut));
    }
    for (;;) {
      const hour = Math.floor(nowMs() / HOUR_MS) + ahead;
      const listed = named ? idKeysAround(keys, hour, lastHour) : [];
      const args = { gen: part.gen, cfgv, hour };
      const [word, now, lines, references, inactive, ...rest] = await callScript(redis, INGEST, {
        keys,
        listed,
        args,
        more,
      });
      if (word === 'OK') {
        const counts = { references: references as number, inactive: inactive as number };
        const events = (lines as string).split('\n').map(readLine);
        return { answer: word, nowMs: now as number, events, ...counts, partNow: readPartNow(rest) };
      }
      if (word !== 'CLOCK') return { answer: word as 'GONE' };
      ahead += Math.floor((now as number) / HOUR_MS) - hour;
      if (typeof lines === 'number') lastHour = Math.max(lastHour, lines);
    }
  };
}
