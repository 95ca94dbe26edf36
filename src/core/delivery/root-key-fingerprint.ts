import { createHmac } from 'node:crypto';

/**
 * Returns what tells root keys apart and gives nothing of them away: HMAC-SHA-256 of a constant under the root key, in
 * base64url.
 */
export function rootKeyFingerprint(rootKey: Uint8Array): string {
  return createHmac('sha256', rootKey).update('sluice root key fingerprint v1').digest('base64url');
}
