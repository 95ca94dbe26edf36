import { createHmac } from 'node:crypto';

/** The time during which the previous version is also used to sign deliveries, which is 24 hours. */
export const ROTATION_OVERLAP_MS = 24 * 60 * 60 * 1000;

/**
 * Derives the 32 bytes that sign the deliveries of a subscription. They are the HMAC-SHA-256 of `<subscription
 * id>.<version>` in UTF-8 with the root key, where the version is a decimal number. Secrets are not stored, because the
 * facade, the controller and the dispatcher derive the same secret.
 */
export function signingKey(rootKey: Uint8Array, subscriptionId: string, version: number): Buffer {
  if (!Number.isSafeInteger(version) || version < 1) throw new RangeError('secret version must be 1 or more');
  return createHmac('sha256', rootKey).update(`${subscriptionId}.${version}`, 'utf8').digest();
}

/**
 * Returns the secret in the format of Standard Webhooks, which is `whsec_` and the base64 encoding (RFC 4648, 4) of the
 * key.
 */
export function signingSecret(rootKey: Uint8Array, subscriptionId: string, version: number): string {
  return `whsec_${signingKey(rootKey, subscriptionId, version).toString('base64')}`;
}

/**
 * Returns the versions that are used at `nowMs`, with the current version first. The previous version is included for
 * 24 hours after `rotatedAtMs`. If the rotation is in the future because of a different clock, it is treated as a
 * current rotation.
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
