import { hash } from 'node:crypto';

/** What every key made over REST begins with, so that a leaked one is recognised. */
const PREFIX = 'slk_';

/** Random bytes that a key is made of: 256 bits. */
export const INGRESS_KEY_BYTES = 32;

/** A key made over REST: `slk_` and the base64url of random bytes. @throws RangeError when there are too few */
export function formatIngressKey(random: Uint8Array): string {
  if (random.length < INGRESS_KEY_BYTES) throw new RangeError(`an ingress key needs ${INGRESS_KEY_BYTES} bytes`);
  return PREFIX + Buffer.from(random).toString('base64url');
}

/** SHA-256 of the key's bytes as they were sent, in hex: what is kept of a key, and what it is found by. */
export function hashIngressKey(key: string): string {
  return hash('sha256', Buffer.from(key, 'latin1'), 'hex');
}

/** Shorter keys can be guessed. */
export const INGRESS_KEY_MIN_BYTES = 20;
/** Ingress reads no longer ones. */
export const INGRESS_KEY_MAX_BYTES = 512;
/** What a header field can carry: neither control characters nor spaces at its ends (RFC 9110, 5.5). */
const FIELD_VALUE = /^[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/** Says what is wrong with a key that a Secret holds; undefined when nothing is. The key is not repeated. */
export function faultOfIngressKey(key: Buffer): string | undefined {
  if (key.length < INGRESS_KEY_MIN_BYTES) {
    return `it has ${key.length} bytes; use ${INGRESS_KEY_MIN_BYTES} or more random characters`;
  }
  if (key.length > INGRESS_KEY_MAX_BYTES) return `it has ${key.length} bytes; use ${INGRESS_KEY_MAX_BYTES} at most`;
  if (FIELD_VALUE.test(key.toString('latin1'))) return undefined;
  return 'no header can carry it: remove line ends, control characters and outer spaces';
}
