import { createHash } from 'node:crypto';
import { crockford } from '../../core/ids/ids.ts';
import type { Part } from '../keys.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const ID = /^evt_([0-9a-hjkmnp-tv-z]{12})([0-9a-hjkmnp-tv-z]{2})([0-9a-hjkmnp-tv-z]{12})$/;

/** Hex digits of a ref that make up four characters: 20 bits. */
const HEX_AT_ONCE = 5;
/** The maximum number of cached stream marks. */
const MARKS_AT_MOST = 10_000;
const marks = new Map<string, string>();

function encodeRef(ref: string): string {
  let out = '';
  for (let at = 0; at < ref.length; at += HEX_AT_ONCE) {
    const bits = Number.parseInt(ref.slice(at, at + HEX_AT_ONCE), 16);
    for (let shift = 15; shift >= 0; shift -= 5) out += ALPHABET[(bits >> shift) & 31];
  }
  return out;
}

const encodePart = (number: number): string => `${ALPHABET[(number >> 5) & 31]}${ALPHABET[number & 31]}`;

function decode(text: string): bigint {
  let value = 0n;
  for (const char of text) value = (value << 5n) | BigInt(ALPHABET.indexOf(char));
  return value;
}

function streamMark({ tenant, queue, gen }: Part): string {
  const stream = `${tenant}/${queue}/${gen}`;
  let mark = marks.get(stream);
  if (mark === undefined) {
    mark = crockford(createHash('sha256').update(stream).digest(), 12);
    if (marks.size >= MARKS_AT_MOST) marks.clear();
    marks.set(stream, mark);
  }
  return mark;
}

/**
 * Returns the generated id for an event: `evt_` followed by 26 characters for its ref, the number of its part, and 60
 * bits of a hash of its stream. The id is not stored, and can be resolved without a lookup. If ids belong to the same
 * part, they are sorted by the time at which the event was accepted. The ids for different streams are never the same.
 */
export function eventIdOf(part: Part, ref: string): string {
  return `evt_${encodeRef(ref)}${encodePart(part.number)}${streamMark(part)}`;
}

/** Returns the ref and the number of the part. If this is not the event id in this stream, it returns undefined. */
export function parseEventId(
  id: string,
  stream: Omit<Part, 'number'>,
): { readonly ref: string; readonly part: number } | undefined {
  const [, ref, part, mark] = ID.exec(id) ?? [];
  if (ref === undefined || part === undefined || mark !== streamMark({ ...stream, number: 0 })) return undefined;
  return { ref: decode(ref).toString(16).padStart(15, '0'), part: Number(decode(part)) };
}
