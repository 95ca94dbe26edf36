import { createHmac } from 'node:crypto';

/** The time for which deliveries are also signed with the previous version: 24 hours. */
export const ROTATION_OVERLAP_MS = 24 * 60 * 60 * 1000;

/** The values from which a subscription's signing keys are derived. */
export interface SigningRoot {
  readonly rootKey: Uint8Array;
  /** `sub_…` */
  readonly subscriptionId: string;
  /** The value of `status.signing.salt`, which is different for each subscription even if they have the same name. */
  readonly salt: string;
}

/**
 * Derives the 32 bytes used to sign a subscription's deliveries, i.e. the HMAC-SHA-256 of
 * `<subscription id>.<salt>.<version>` in UTF-8 (with a decimal version) under the root key. The secrets don't need to
 * be stored, because the facade, the controller, and the dispatcher all derive the same secret.
 */
export function signingKey({ rootKey, subscriptionId, salt }: SigningRoot, version: number): Buffer {
  if (!Number.isSafeInteger(version) || version < 1) throw new RangeError('secret version must be 1 or more');
  // Endpoints sealed by an older version may not contain a salt, even though the type requires it.
  if (!salt) throw new RangeError('salt must not be empty');
  return createHmac('sha256', rootKey).update(`${subscriptionId}.${salt}.${version}`, 'utf8').digest();
}

/** Returns the secret in Standard Webhooks format: `whsec_` followed by the base64 (RFC 4648, 4) of the key. */
export function signingSecret(root: SigningRoot, version: number): string {
  return `whsec_${signingKey(root, version).toString('base64')}`;
}

/**
 * Returns the versions in use at `nowMs`, starting with the current version. For 24 hours after `rotatedAtMs`, the
 * previous version is included. A rotation in the future, caused by clock differences, is treated as happening now.
 */
export function signingVersions(version: number, rotatedAtMs: number | undefined, nowMs: number): number[] {
  const overlaps = version > 1 && rotatedAtMs !== undefined && nowMs < rotatedAtMs + ROTATION_OVERLAP_MS;
  return overlaps ? [version, version - 1] : [version];
}

/** The part of a Subscription's `status.signing` that specifies the root keys of its secrets. */
export interface SignedBy {
  readonly version?: number | undefined;
  readonly key?: string | undefined;
  readonly previousKey?: string | undefined;
}

/**
 * Returns the ids of the root keys from which a version of the secret and the previous version are derived. If a
 * version is newer than the status, it is derived from the first root key and does not change if a different key
 * becomes the first.
 */
export function signedBy(
  { version: signed, key, previousKey }: SignedBy = {},
  version: number,
  first: string,
): { readonly key?: string; readonly previousKey?: string } {
  const [now, before] = signed !== undefined && version > signed ? [first, key] : [key, previousKey];
  return { ...(now === undefined ? {} : { key: now }), ...(before === undefined ? {} : { previousKey: before }) };
}

/** Returns the root key with the given id. Without an id, returns the oldest root key, unless it is retired. */
export interface SecretRing {
  readonly key: (id: string | undefined) => { readonly secret: Uint8Array } | undefined;
}

/** A subscription, and the root keys from which its secrets are derived. */
export interface SigningOwner extends Omit<SigningRoot, 'rootKey'> {
  readonly key?: string | undefined;
  readonly previousKey?: string | undefined;
}

/** Returns {@link signingVersions}, including the ids of their root keys. */
function versionsWithKeys(
  { key, previousKey }: Pick<SigningOwner, 'key' | 'previousKey'>,
  version: number,
  rotatedAtMs: number | undefined,
  nowMs: number,
) {
  return signingVersions(version, rotatedAtMs, nowMs).map(each => ({
    version: each,
    id: each === version ? key : previousKey,
  }));
}

/**
 * Returns the id of a root key that is missing from the ring, but is required by a version in use at `nowMs`. `oldest`
 * for a version without an id.
 */
export function missingSigningKey(
  ring: SecretRing,
  owner: Pick<SigningOwner, 'key' | 'previousKey'>,
  version: number,
  rotatedAtMs: number | undefined,
  nowMs: number,
): string | undefined {
  const missing = versionsWithKeys(owner, version, rotatedAtMs, nowMs).find(({ id }) => ring.key(id) === undefined);
  return missing && (missing.id ?? 'oldest');
}

/**
 * Returns the keys for {@link signingVersions}, in the same order.
 *
 * @throws Error if the root key of one of the versions is missing. A partner may still verify with the previous one
 */
export function signingKeys(
  ring: SecretRing,
  { subscriptionId, salt, ...owner }: SigningOwner,
  version: number,
  rotatedAtMs: number | undefined,
  nowMs: number,
): Buffer[] {
  return versionsWithKeys(owner, version, rotatedAtMs, nowMs).map(({ version: each, id }) => {
    const rootKey = ring.key(id)?.secret;
    if (rootKey === undefined)
      throw new Error(`the signing secret is derived from root key ${id ?? 'oldest'}, which is missing`);
    return signingKey({ rootKey, subscriptionId, salt }, each);
  });
}
