import { hash } from 'node:crypto';

/** Prefix of every key created over REST; scanners recognize a leaked one by it. */
const PREFIX = 'slk_';

/** Random bytes per key: 256 bits. */
export const INGRESS_KEY_BYTES = 32;

/** Returns a key: `slk_` and the base64url of random bytes. @throws RangeError if there are too few */
export function formatIngressKey(random: Uint8Array): string {
  if (random.length < INGRESS_KEY_BYTES) throw new RangeError(`an ingress key needs ${INGRESS_KEY_BYTES} bytes`);
  return PREFIX + Buffer.from(random).toString('base64url');
}

/** Returns the SHA-256 (hex) of the key's bytes as sent. Sluice stores and looks up only this hash. */
export function hashIngressKey(key: string): string {
  return hash('sha256', Buffer.from(key, 'latin1'), 'hex');
}

/** Minimum length: shorter keys can be guessed. */
const INGRESS_KEY_MIN_BYTES = 20;
/** Maximum length that ingress reads. */
const INGRESS_KEY_MAX_BYTES = 512;
/** Characters of a header field value: no control characters, no outer spaces (RFC 9110, 5.5). */
const FIELD_VALUE = /^[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/** Returns what is wrong with a key in a Secret; undefined if it is valid. Never contains the key. */
export function faultOfIngressKey(key: Buffer): string | undefined {
  if (key.length < INGRESS_KEY_MIN_BYTES) {
    return `it has ${key.length} bytes; use ${INGRESS_KEY_MIN_BYTES} or more random characters`;
  }
  if (key.length > INGRESS_KEY_MAX_BYTES) return `it has ${key.length} bytes; use ${INGRESS_KEY_MAX_BYTES} at most`;
  if (FIELD_VALUE.test(key.toString('latin1'))) return undefined;
  return 'no header can carry it: remove line ends, control characters and outer spaces';
}
