import { createHmac } from 'node:crypto';

/** How long the previous version will also be used to sign deliveries: 24 hours. */
export const ROTATION_OVERLAP_MS = 24 * 60 * 60 * 1000;

/** What the signing keys of a subscription are derived from. */
export interface SigningRoot {
  readonly rootKey: Uint8Array;
  /** `sub_…` */
  readonly subscriptionId: string;
  /** The value of `status.signing.salt`, which no two subscriptions share, even if they have the same name. */
  readonly salt: string;
}

/**
 * Derives the 32 bytes used to sign a subscription's deliveries, i.e. the HMAC-SHA-256 of
 * `<subscription id>.<salt>.<version>` in UTF-8 (with a decimal version) under the root key. There is no need to store
 * secrets, because the facade, the controller, and the dispatcher all derive the same one.
 */
export function signingKey({ rootKey, subscriptionId, salt }: SigningRoot, version: number): Buffer {
  if (!Number.isSafeInteger(version) || version < 1) throw new RangeError('secret version must be 1 or more');
  if (salt === '') throw new RangeError('salt must not be empty');
  return createHmac('sha256', rootKey).update(`${subscriptionId}.${salt}.${version}`, 'utf8').digest();
}

/** Returns the secret in Standard Webhooks format: `whsec_` followed by the base64 (RFC 4648, 4) of the key. */
export function signingSecret(root: SigningRoot, version: number): string {
  return `whsec_${signingKey(root, version).toString('base64')}`;
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
  root: SigningRoot,
  version: number,
  rotatedAtMs: number | undefined,
  nowMs: number,
): Buffer[] {
  return signingVersions(version, rotatedAtMs, nowMs).map(v => signingKey(root, v));
}
