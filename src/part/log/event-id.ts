import { createHash } from 'node:crypto';
import { crockford } from '../../core/ids/ids.ts';
import type { Part } from '../keys.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const ID = /^evt_([0-9a-hjkmnp-tv-z]{12})([0-9a-hjkmnp-tv-z]{2})([0-9a-hjkmnp-tv-z]{12})$/;
const [REF_CHARS, PART_CHARS] = [12, 2];

function encode(value: bigint, chars: number): string {
  let out = '';
  for (let rest = value, at = 0; at < chars; at++, rest >>= 5n) out = ALPHABET[Number(rest & 31n)] + out;
  return out;
}

function decode(text: string): bigint {
  let value = 0n;
  for (const char of text) value = (value << 5n) | BigInt(ALPHABET.indexOf(char));
  return value;
}

function streamMark({ tenant, queue, gen }: Part): string {
  return crockford(createHash('sha256').update(`${tenant}/${queue}/${gen}`).digest(), 12);
}

/**
 * Returns the id that an event has when its sender gave none: `evt_`, its ref, the number of its part, and 60 bits of a hash
 * of its stream, 26 characters together. Nothing is stored for it, and it is found without a look-up. IDs of a part sort in
 * the order of acceptance; those of different streams differ.
 */
export function eventIdOf(part: Part, ref: string): string {
  return `evt_${encode(BigInt(`0x${ref}`), REF_CHARS)}${encode(BigInt(part.number), PART_CHARS)}${streamMark(part)}`;
}

/** Returns the ref and the number of the part, or undefined if the id is not of an event of this stream. */
export function parseEventId(
  id: string,
  stream: Omit<Part, 'number'>,
): { readonly ref: string; readonly part: number } | undefined {
  const [, ref, part, mark] = ID.exec(id) ?? [];
  if (ref === undefined || part === undefined || mark !== streamMark({ ...stream, number: 0 })) return undefined;
  return { ref: decode(ref).toString(16).padStart(15, '0'), part: Number(decode(part)) };
}
