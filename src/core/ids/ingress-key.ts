import { hash } from 'node:crypto';

/** The prefix of keys that are created over REST. Secret scanners use it to detect exposed keys. */
const PREFIX = 'slk_';

/** The number of random bytes in a key, which is 256 bits. */
export const INGRESS_KEY_BYTES = 32;

/**
 * Returns a key that consists of `slk_` and the base64url encoding of random bytes. @throws RangeError if there are not
 * enough bytes
 */
export function formatIngressKey(random: Uint8Array): string {
  if (random.length < INGRESS_KEY_BYTES) throw new RangeError(`an ingress key needs ${INGRESS_KEY_BYTES} bytes`);
  return PREFIX + Buffer.from(random).toString('base64url');
}

/** Returns the SHA-256 (hex) of the key's bytes as sent. Sluice stores and looks up only this hash. */
export function hashIngressKey(key: string): string {
  return hash('sha256', Buffer.from(key, 'latin1'), 'hex');
}

/** The minimum length of a key. Shorter keys can be guessed. */
const INGRESS_KEY_MIN_BYTES = 20;
/** The maximum length of a key that ingress reads. */
const INGRESS_KEY_MAX_BYTES = 512;
/**
 * The characters of a header field value, without control characters and without leading or trailing spaces (RFC 9110,
 * 5.5).
 */
const FIELD_VALUE = /^[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/**
 * Returns an error message for a key in a Secret, or undefined if the key is valid. The message does not contain the
 * key.
 */
export function faultOfIngressKey(key: Buffer): string | undefined {
  if (key.length < INGRESS_KEY_MIN_BYTES) {
    return `it has ${key.length} bytes; use ${INGRESS_KEY_MIN_BYTES} or more random characters`;
  }
  if (key.length > INGRESS_KEY_MAX_BYTES) return `it has ${key.length} bytes; use ${INGRESS_KEY_MAX_BYTES} at most`;
  if (FIELD_VALUE.test(key.toString('latin1'))) return undefined;
  return 'it contains characters that headers do not allow. Remove line breaks, control characters and leading or trailing spaces';
}
