import { createHmac } from 'node:crypto';

/** How long the previous version signs beside the new one: 24 h. */
export const ROTATION_OVERLAP_MS = 24 * 60 * 60 * 1000;

/**
 * The 32 bytes that sign the deliveries of a subscription: HMAC-SHA-256 of the root key over the UTF-8 bytes of
 * `<subscription id>.<version>`, version in decimal. Derived, so no secret is stored anywhere, and facade, controller
 * and dispatcher agree without speaking to each other.
 */
export function signingKey(rootKey: Uint8Array, subscriptionId: string, version: number): Buffer {
  if (!Number.isSafeInteger(version) || version < 1) throw new RangeError('secret version must be 1 or more');
  return createHmac('sha256', rootKey).update(`${subscriptionId}.${version}`, 'utf8').digest();
}

/** The secret as a partner sees it: `whsec_` and the base64 (RFC 4648, 4) of the key, as Standard Webhooks writes it. */
export function signingSecret(rootKey: Uint8Array, subscriptionId: string, version: number): string {
  return `whsec_${signingKey(rootKey, subscriptionId, version).toString('base64')}`;
}

/**
 * Versions that sign at `nowMs`, the current one first: it alone, or for 24 h after `rotatedAtMs` the one before too.
 * A rotation that comes from another clock's future counts as just done.
 */
export function signingVersions(version: number, rotatedAtMs: number | undefined, nowMs: number): number[] {
  const overlaps = version > 1 && rotatedAtMs !== undefined && nowMs < rotatedAtMs + ROTATION_OVERLAP_MS;
  return overlaps ? [version, version - 1] : [version];
}

/** The keys of {@link signingVersions}, in the same order. */
export function signingKeys(
  root: { rootKey: Uint8Array; subscriptionId: string },
  version: number,
  rotatedAtMs: number | undefined,
  nowMs: number,
): Buffer[] {
  return signingVersions(version, rotatedAtMs, nowMs).map(v => signingKey(root.rootKey, root.subscriptionId, v));
}
