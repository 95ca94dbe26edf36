import { createHmac } from 'node:crypto';

/**
 * Returns a fingerprint of the root key that does not reveal the key itself. This is the HMAC-SHA-256 of a constant in
 * base64url.
 */
export function rootKeyFingerprint(rootKey: Uint8Array): string {
  return createHmac('sha256', rootKey).update('sluice root key fingerprint v1').digest('base64url');
}
