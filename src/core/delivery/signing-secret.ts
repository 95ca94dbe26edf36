import { createHmac } from 'node:crypto';

/** How long the previous version will also be used to sign deliveries: 24 hours. */
export const ROTATION_OVERLAP_MS = 24 * 60 * 60 * 1000;

/**
 * Derives the 32 bytes used to sign a subscription's deliveries, i.e. the HMAC-SHA-256 of `<subscription id>.<version>`
 * in UTF-8 (with a decimal version) under the root key. There is no need to store secrets, because the facade, the
 * controller, and the dispatcher all derive the same one.
 */
export function signingKey(rootKey: Uint8Array, subscriptionId: string, version: number): Buffer {
  if (!Number.isSafeInteger(version) || version < 1) throw new RangeError('secret version must be 1 or more');
  return createHmac('sha256', rootKey).update(`${subscriptionId}.${version}`, 'utf8').digest();
}

/** Returns the secret in Standard Webhooks format: `whsec_` followed by the base64 (RFC 4648, 4) of the key. */
export function signingSecret(rootKey: Uint8Array, subscriptionId: string, version: number): string {
  return `whsec_${signingKey(rootKey, subscriptionId, version).toString('base64')}`;
}

/**
 * Returns the versions in use at `nowMs`, current one first. For 24 hours after `rotatedAtMs`, this includes the
 * previous version. A rotation in the future, caused by clock differences, is treated as happening now.
 */
export function signingVersions(version: number, rotatedAtMs: number | undefined, nowMs: number): number[] {
  const overlaps = version > 1 && rotatedAtMs !== undefined && nowMs < rotatedAtMs + ROTATION_OVERLAP_MS;
  return overlaps ? [version, version - 1] : [version];
}

/** Returns the keys for {@link signingVersions}, in the same order. */
export function signingKeys(
  root: { rootKey: Uint8Array; subscriptionId: string },
  version: number,
  rotatedAtMs: number | undefined,
  nowMs: number,
): Buffer[] {
  return signingVersions(version, rotatedAtMs, nowMs).map(v => signingKey(root.rootKey, root.subscriptionId, v));
}
