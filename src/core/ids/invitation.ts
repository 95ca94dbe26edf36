import { createHash, createHmac } from 'node:crypto';

/** The time for which an invitation can be accepted: 14 days. */
export const INVITATION_LIFETIME_MS = 14 * 24 * 60 * 60 * 1000;

/** The prefix for invitation tokens. Used by secret scanners to detect exposed tokens. */
const PREFIX = 'sinv_';

/** Separates invitation tokens from other values derived from the root key. */
const LABEL = 'sluice invitation v1';

/** An invitation's status, not including its token. */
export interface IssuedInvitation {
  readonly tokenHash: string;
  /** RFC 3339. */
  readonly issuedAt: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

/**
 * Returns an invitation's token: `sinv_` followed by the base64url of a 256-bit HMAC-SHA-256 under the root key,
 * covering the label, the Integration's UID and `issuedAt`, separated by NUL. Should we crash between storing its hash
 * and sending the mail, the same token can simply be derived again.
 *
 * @param issuedAt RFC 3339, exactly as in the status
 */
export function deriveInvitationToken(rootKey: Uint8Array, uid: string, issuedAt: string): string {
  const mac = createHmac('sha256', rootKey).update(`${LABEL}\0${uid}\0${issuedAt}`, 'utf8').digest('base64url');
  return PREFIX + mac;
}

/** Returns the lowercase hex SHA-256 of the token's UTF-8 bytes. Only this hash is stored and used for lookups. */
export function hashInvitationToken(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex');
}

/**
 * Returns a new invitation.
 *
 * @param issuedAt RFC 3339, in whole seconds
 */
export function issueInvitation(rootKey: Uint8Array, uid: string, issuedAt: string): IssuedInvitation {
  const expiresAt = new Date(Date.parse(issuedAt) + INVITATION_LIFETIME_MS).toISOString().replace(/\.000Z$/, 'Z');
  return { tokenHash: hashInvitationToken(deriveInvitationToken(rootKey, uid, issuedAt)), issuedAt, expiresAt };
}

/**
 * Returns the token if it can be derived from one of the root keys. Returns undefined if the root key was removed or
 * the UID has changed.
 */
export function findInvitationToken(
  rootKeys: readonly { readonly secret: Uint8Array }[],
  uid: string,
  { issuedAt, tokenHash }: IssuedInvitation,
): string | undefined {
  return rootKeys
    .map(({ secret }) => deriveInvitationToken(secret, uid, issuedAt))
    .find(token => hashInvitationToken(token) === tokenHash);
}
