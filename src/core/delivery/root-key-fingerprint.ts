import { createHmac } from 'node:crypto';

/**
 * Returns a fingerprint of the root key without revealing the key itself, computed as the base64url HMAC-SHA-256 of a
 * constant.
 */
export function rootKeyFingerprint(rootKey: Uint8Array): string {
  return createHmac('sha256', rootKey).update('sluice root key fingerprint v1').digest('base64url');
}
