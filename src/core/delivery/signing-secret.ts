import { createHmac } from 'node:crypto';

/** How long the previous version keeps signing beside the new one: 24 h. */
export const ROTATION_OVERLAP_MS = 24 * 60 * 60 * 1000;

/**
 * Derives the 32 bytes that sign the deliveries of a subscription: HMAC-SHA-256 of the root key over the UTF-8 bytes
 * of `<subscription id>.<version>`, version in decimal. No secret is stored, and facade, controller and dispatcher
 * derive the same one.
 */
export function signingKey(rootKey: Uint8Array, subscriptionId: string, version: number): Buffer {
  if (!Number.isSafeInteger(version) || version < 1) throw new RangeError('secret version must be 1 or more');
  return createHmac('sha256', rootKey).update(`${subscriptionId}.${version}`, 'utf8').digest();
}

/** Returns the secret in the form of Standard Webhooks: `whsec_` and the base64 (RFC 4648, 4) of the key. */
export function signingSecret(rootKey: Uint8Array, subscriptionId: string, version: number): string {
  return `whsec_${signingKey(rootKey, subscriptionId, version).toString('base64')}`;
}

/**
 * Returns the versions that sign at `nowMs`, the current one first; for 24 h after `rotatedAtMs` also the previous
 * one. A rotation in the future (by another clock) counts as just done.
 */
export function signingVersions(version: number, rotatedAtMs: number | undefined, nowMs: number): number[] {
  const overlaps = version > 1 && rotatedAtMs !== undefined && nowMs < rotatedAtMs + ROTATION_OVERLAP_MS;
  return overlaps ? [version, version - 1] : [version];
}

/** Returns the keys of {@link signingVersions}, in the same order. */
export function signingKeys(
  root: { rootKey: Uint8Array; subscriptionId: string },
  version: number,
  rotatedAtMs: number | undefined,
  nowMs: number,
): Buffer[] {
  return signingVersions(version, rotatedAtMs, nowMs).map(v => signingKey(root.rootKey, root.subscriptionId, v));
}
