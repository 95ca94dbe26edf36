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
  // Endpoints that were sealed by an older version may lack the salt, in spite of the type.
  if (!salt) throw new RangeError('salt must not be empty');
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

/** The part of a Subscription's `status.signing` that tells which root keys its secrets are derived from. */
export interface SignedBy {
  readonly version?: number | undefined;
  readonly key?: string | undefined;
  readonly previousKey?: string | undefined;
}

/**
 * Returns the ids of the root keys that a version of the secret and its predecessor are derived from. A version that is
 * newer than the status is derived from the first root key, and keeps it when others become the first.
 */
export function signedBy(
  { version: signed, key, previousKey }: SignedBy = {},
  version: number,
  first: string,
): { readonly key?: string; readonly previousKey?: string } {
  const [now, before] = signed !== undefined && version > signed ? [first, key] : [key, previousKey];
  return { ...(now === undefined ? {} : { key: now }), ...(before === undefined ? {} : { previousKey: before }) };
}

/** Finds a root key by its id. Without an id, the oldest one. */
export interface SecretRing {
  readonly key: (id: string | undefined) => { readonly secret: Uint8Array } | undefined;
}

/** A subscription, and the root keys that its secrets are derived from. */
export interface SigningOwner extends Omit<SigningRoot, 'rootKey'> {
  readonly key?: string | undefined;
  readonly previousKey?: string | undefined;
}

/** Returns {@link signingVersions} with the ids of their root keys. */
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

/** Returns the id of a root key that a version in use at `nowMs` is derived from, and that the ring does not have. */
export function missingSigningKey(
  ring: SecretRing,
  owner: Pick<SigningOwner, 'key' | 'previousKey'>,
  version: number,
  rotatedAtMs: number | undefined,
  nowMs: number,
): string | undefined {
  return versionsWithKeys(owner, version, rotatedAtMs, nowMs).find(({ id }) => ring.key(id) === undefined)?.id;
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
    if (rootKey === undefined) throw new Error(`the signing secret is derived from root key ${id}, which is missing`);
    return signingKey({ rootKey, subscriptionId, salt }, each);
  });
}
