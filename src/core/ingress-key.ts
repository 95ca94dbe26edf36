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
