import { hash } from 'node:crypto';

/** The prefix for keys created over REST. Used by secret scanners to detect exposed keys. */
const PREFIX = 'slk_';

/** The number of random bytes in each key (256 bits). */
export const INGRESS_KEY_BYTES = 32;

/**
 * Returns a new key, which is `slk_` followed by random bytes in base64url.
 * @throws RangeError if there aren't enough bytes
 */
export function formatIngressKey(random: Uint8Array): string {
  if (random.length < INGRESS_KEY_BYTES) throw new RangeError(`an ingress key needs ${INGRESS_KEY_BYTES} bytes`);
  return PREFIX + Buffer.from(random).toString('base64url');
}

/**
 * Returns the SHA-256 of a key in hex, based on the bytes that were sent. Only this hash is stored and used for
 * lookups.
 */
export function hashIngressKey(key: string): string {
  return hash('sha256', Buffer.from(key, 'latin1'), 'hex');
}

/** The minimum length of a key. Anything shorter could be guessed. */
const INGRESS_KEY_MIN_BYTES = 20;
/** The maximum length of a key that ingress will read. */
const INGRESS_KEY_MAX_BYTES = 512;
/** A header field value without control characters or leading and trailing spaces (RFC 9110, 5.5). */
const FIELD_VALUE = /^[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/** Returns true if the key can be sent in a header. */
export function isFieldValue(key: Buffer): boolean {
  return FIELD_VALUE.test(key.toString('latin1'));
}

/**
 * Returns an error message if a key in a Secret is invalid, or undefined if it is valid. The message does not contain
 * the key.
 */
export function faultOfIngressKey(key: Buffer): string | undefined {
  if (key.length < INGRESS_KEY_MIN_BYTES) {
    return `it has ${key.length} bytes; use ${INGRESS_KEY_MIN_BYTES} or more random characters`;
  }
  if (key.length > INGRESS_KEY_MAX_BYTES) return `it has ${key.length} bytes; use ${INGRESS_KEY_MAX_BYTES} at most`;
  if (isFieldValue(key)) return undefined;
  return 'it contains characters that headers do not allow. Remove line breaks, control characters and leading or trailing spaces';
}
