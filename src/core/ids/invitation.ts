import { createHash, createHmac } from 'node:crypto';

/** The time during which an invitation can be accepted, which is 14 days. */
export const INVITATION_LIFETIME_MS = 14 * 24 * 60 * 60 * 1000;

/** The prefix of invitation tokens. Secret scanners use it to detect exposed tokens. */
const PREFIX = 'sinv_';

/** Separates invitation tokens from other values that are derived from the root key. */
const LABEL = 'sluice invitation v1';

/** The status of an invitation, which does not contain the token. */
export interface IssuedInvitation {
  readonly tokenHash: string;
  /** RFC 3339. */
  readonly issuedAt: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

/**
 * Returns the token of an invitation: `sinv_` and the base64url of HMAC-SHA-256 of the root key over label, UID of the
 * Integration and `issuedAt`, separated by NUL; 256 bits. Derived, so that a crash between storing its hash and
 * sending the mail loses nothing: the same token is derived again.
 *
 * @param issuedAt RFC 3339, exactly as in the status
 */
export function deriveInvitationToken(rootKey: Uint8Array, uid: string, issuedAt: string): string {
  const mac = createHmac('sha256', rootKey).update(`${LABEL}\0${uid}\0${issuedAt}`, 'utf8').digest('base64url');
  return PREFIX + mac;
}

/** Returns the SHA-256 (lower-case hex) over the token's UTF-8 bytes. Sluice stores and looks up only this hash. */
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
 * Returns whether the token can still be derived. This is not possible after a change of the root key or of the UID.
 */
export function isDerivable(rootKey: Uint8Array, uid: string, invitation: IssuedInvitation): boolean {
  return hashInvitationToken(deriveInvitationToken(rootKey, uid, invitation.issuedAt)) === invitation.tokenHash;
}
