/**
 * A ref is the event position in its queue (a Redis Stream id, `ms-seq`) as 15 fixed-width Crockford base32 characters,
 * 10 for the milliseconds and 5 for the sequence. Refs are sorted in the same way as strings and as numbers. In
 * contrast, the stream id `-10` sorts before `-9`. Refs support times until the year 37,648 and 33,554,432 events per
 * millisecond.
 */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const VALUE = new Int8Array(128).fill(-1);
for (let i = 0; i < ALPHABET.length; i++) VALUE[ALPHABET.charCodeAt(i)] = i;

const MS_CHARS = 10;
const SEQ_CHARS = 5;
const REF_PATTERN = /^[0-9a-hjkmnp-tv-z]{15}$/;

function encode(value: number, chars: number): string {
  let out = '';
  for (let i = 0; i < chars; i++) {
    out = ALPHABET[value % 32] + out;
    value = Math.floor(value / 32);
  }
  return out;
}

function decode(text: string, from: number, to: number): number {
  let value = 0;
  for (let i = from; i < to; i++) value = value * 32 + (VALUE[text.charCodeAt(i)] as number);
  return value;
}

/** Returns the ref of a position. */
export function refOf(ms: number, sequence: number): string {
  return encode(ms, MS_CHARS) + encode(sequence, SEQ_CHARS);
}

/** Returns the ref of the stream id `ms-seq`. */
export function refOfStreamId(id: string): string {
  const dash = id.indexOf('-');
  return refOf(Number(id.slice(0, dash)), Number(id.slice(dash + 1)));
}

/** Returns the stream id `ms-seq` of a ref. */
export function streamIdOfRef(ref: string): string {
  return `${refMs(ref)}-${decode(ref, MS_CHARS, MS_CHARS + SEQ_CHARS)}`;
}

/** Returns the time at which the event with this ref was accepted, in milliseconds of the Redis clock. */
export function refMs(ref: string): number {
  return decode(ref, 0, MS_CHARS);
}

export function isRef(text: string): boolean {
  return REF_PATTERN.test(text);
}

/** Returns true if the stream id `id` is after `position`. Compares (ms, seq) and not the strings. */
export function isAfter(id: string, position: string): boolean {
  const [aMs, aSeq] = id.split('-').map(Number) as [number, number];
  const [bMs, bSeq] = position.split('-').map(Number) as [number, number];
  return aMs > bMs || (aMs === bMs && aSeq > bSeq);
}
