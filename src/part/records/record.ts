import { unpackSlots } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';

/** The result of an attempt. */
export interface AttemptNote {
  /** The status or the reason. This text must not contain blanks, commas, or semicolons. */
  readonly reason: string;
  /** If there was no attempt, this is absent. */
  readonly latencyMs?: number;
}

/** The final record of an event for a subscription (see `records.lua`). */
export interface DeliveryRecord extends AttemptNote {
  readonly slot: string;
  readonly outcome: 'delivered' | 'dead' | 'expired' | 'skipped';
  readonly endedMs: number;
  readonly attempts: number;
  /** Set if a dead letter has been recovered and then failed again. */
  readonly recovered?: true;
  /** The attempts that have failed before this (at most the last 20). */
  readonly failed: readonly (AttemptNote & { readonly endedMs: number })[];
}

const OUTCOMES: Readonly<Record<string, DeliveryRecord['outcome']>> = {
  d: 'delivered',
  x: 'dead',
  X: 'dead',
  e: 'expired',
  s: 'skipped',
};
const RECOVERED = 'X';
const SLOT_BYTES = 5;
const END = ';'.charCodeAt(0);

/** The data about an attempt that is passed to scripts: the reason and the latency in hex. */
export function noteText({ reason, latencyMs }: AttemptNote): string {
  return `${reason} ${latencyMs === undefined ? '-' : Math.max(0, Math.round(latencyMs)).toString(16)}`;
}

function parseNote(reason = '', latency = '-'): AttemptNote {
  return latency === '-' ? { reason } : { reason, latencyMs: Number.parseInt(latency, 16) };
}

/** The name of the fields that contain the records of an event or one of its replays. */
export function recordsField(ref: string, replay?: string): string {
  return replay === undefined ? ref : `${ref}:${replay}`;
}

/** The fields of all full chunks that are before a chunk. */
export function fullChunks(field: string, chunk: Buffer): string[] {
  return Array.from({ length: chunk[0] ?? 0 }, (_, i) => `${field}\0${i + 1}`);
}

/** Reads a single chunk of an event's records. */
export function parseRecords(ref: string, chunk: Buffer): DeliveryRecord[] {
  const records: DeliveryRecord[] = [];
  const acceptedMs = msOfRef(ref);
  const timeOf = (age = '0') => acceptedMs + Number.parseInt(age, 16);
  for (let at = 1; at < chunk.length; ) {
    const end = chunk.indexOf(END, at + SLOT_BYTES);
    // The end of this is damaged.
    if (end < 0) break;
    const [slot = ''] = unpackSlots(chunk.subarray(at, at + SLOT_BYTES));
    const [last = '', ...failed] = chunk.toString('latin1', at + SLOT_BYTES, end).split(',');
    const [age = '', attempts = '0', reason, latency] = last.split(' ');
    records.push({
      slot,
      outcome: OUTCOMES[age[0] ?? ''] ?? 'expired',
      endedMs: timeOf(age.slice(1)),
      attempts: Number.parseInt(attempts, 16),
      ...(age[0] === RECOVERED ? { recovered: true } : {}),
      ...parseNote(reason, latency),
      failed: failed.map(text => {
        const [when, why, took] = text.split(' ');
        return { endedMs: timeOf(when), ...parseNote(why, took) };
      }),
    });
    at = end + 1;
  }
  return records;
}
