import { createHmac } from 'node:crypto';

/** Number of characters in a root key's id. */
export const ROOT_KEY_ID_LENGTH = 10;

/**
 * Returns a fingerprint of the root key that does not reveal the key itself: the HMAC-SHA-256 of a constant in
 * base64url.
 */
export function rootKeyFingerprint(rootKey: Uint8Array): string {
  return createHmac('sha256', rootKey).update('sluice root key fingerprint v1').digest('base64url');
}

/** Returns a root key's id: the first 10 characters of its fingerprint. Shown in statuses and encrypted values. */
export function rootKeyId(rootKey: Uint8Array): string {
  return rootKeyFingerprint(rootKey).slice(0, ROOT_KEY_ID_LENGTH);
}
