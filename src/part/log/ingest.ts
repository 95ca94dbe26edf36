import { hash } from 'node:crypto';
import type { Argument } from '../../redis/client.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { HOUR_MS, type Part, partKeys } from '../keys.ts';

const INGEST = readNamedScript(new URL('ingest.lua', import.meta.url));
/** Events of one call. */
const MOST = 64;
/** Hours before now in which a sender's id may lie, with one more for a clock that differs; and one after it. */
const [HOURS_BEFORE, HOURS_AFTER] = [25, 1];

export interface PartEvent {
  /** The id that its sender gave; absent where it is ours, which is made of the ref (`event-id.ts`). */
  readonly senderId?: string;
  /** '' for none: it is routed to nobody. */
  readonly groupKey: string;
  readonly meta: string;
  readonly body: Buffer;
}

export type EventAnswer =
  | { readonly answer: 'OK' | 'DUP'; readonly ref: string }
  /** The stream's quota is used up. */
  | { readonly answer: 'FULL' };

export type IngestAnswer =
  | {
      readonly answer: 'OK';
      /** Of the part's clock. */
      readonly nowMs: number;
      /** Of the first events. Those without an answer are not stored: with them the call would do too much. */
      readonly events: readonly EventAnswer[];
    }
  | { readonly answer: 'GONE' | 'STALE' | 'CLOSED' };

/** Stores and routes up to 64 events, 1 MiB together, in one step. `cfgv` is the configuration that they were read by. */
export type Ingest = (part: Part, cfgv: string, events: readonly PartEvent[]) => Promise<IngestAnswer>;

/** 16 bytes of SHA-256: what dedupe compares. By way of hex, which takes a quarter of the time. */
function hashOfId(id: string): Buffer {
  return Buffer.from(hash('sha256', id, 'hex').slice(0, 32), 'hex');
}

function readLine(line: string): EventAnswer {
  const ref = line.slice(1);
  return line[0] === 'O' ? { answer: 'OK', ref } : line[0] === 'D' ? { answer: 'DUP', ref } : { answer: 'FULL' };
}

export function createIngest(redis: ScriptClient, nowMs: () => number = Date.now): Ingest {
  /** Hours that the part's clock is ahead of ours. */
  let ahead = 0;
  return async function ingest(part, cfgv, events) {
    if (events.length > MOST) throw new RangeError(`${events.length} events in one call`);
    const keys = partKeys(part);
    const named = events.some(({ senderId }) => senderId !== undefined);
    const more: Argument[] = [];
    for (const { senderId, groupKey, meta, body } of events) {
      more.push(senderId === undefined ? '' : hashOfId(senderId), groupKey, meta, body);
    }
    for (;;) {
      const hour = Math.floor(nowMs() / HOUR_MS) + ahead;
      const listed: string[] = [];
      if (named) for (let at = hour - HOURS_BEFORE; at <= hour + HOURS_AFTER; at++) listed.push(keys.ids(at));
      const args = { gen: part.gen, cfgv, hour };
      const [word, now, lines] = await callScript(redis, INGEST, { keys, listed, args, more });
      if (word === 'OK') {
        return { answer: word, nowMs: now as number, events: (lines as string).split('\n').map(readLine) };
      }
      if (word !== 'CLOCK') return { answer: word as 'GONE' };
      ahead += Math.floor((now as number) / HOUR_MS) - hour;
    }
  };
}
