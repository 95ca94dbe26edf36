import { unpackSlots } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';

/** How an attempt ended. */
export interface AttemptNote {
  /** Status or reason: no blanks, commas or semicolons. */
  readonly reason: string;
  /** Absent if no attempt was made. */
  readonly latencyMs?: number;
}

/** The final record of one event for one subscription; see `records.lua`. */
export interface DeliveryRecord extends AttemptNote {
  readonly slot: string;
  readonly outcome: 'delivered' | 'dead' | 'expired' | 'skipped';
  readonly endedMs: number;
  readonly attempts: number;
  /** Set on a dead letter that was recovered before it died again. */
  readonly recovered?: true;
  /** Attempts that failed before, the last 20. */
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

/** What the scripts are given of an attempt: reason and latency in hex. */
export function noteText({ reason, latencyMs }: AttemptNote): string {
  return `${reason} ${latencyMs === undefined ? '-' : Math.max(0, Math.round(latencyMs)).toString(16)}`;
}

function parseNote(reason = '', latency = '-'): AttemptNote {
  return latency === '-' ? { reason } : { reason, latencyMs: Number.parseInt(latency, 16) };
}

/** Name of the fields with the records of an event, or of a replay of it. */
export function recordsField(ref: string, replay?: string): string {
  return replay === undefined ? ref : `${ref}:${replay}`;
}

/** Fields of the full chunks before a chunk. */
export function fullChunks(field: string, chunk: Buffer): string[] {
  return Array.from({ length: chunk[0] ?? 0 }, (_, i) => `${field}\0${i + 1}`);
}

/** Reads one chunk of records of an event. */
export function parseRecords(ref: string, chunk: Buffer): DeliveryRecord[] {
  const records: DeliveryRecord[] = [];
  const acceptedMs = msOfRef(ref);
  const timeOf = (age = '0') => acceptedMs + Number.parseInt(age, 16);
  for (let at = 1; at < chunk.length; ) {
    const end = chunk.indexOf(END, at + SLOT_BYTES);
    // A damaged end.
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
