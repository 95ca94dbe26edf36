import { createHash, createHmac } from 'node:crypto';

/** How long an invitation can be accepted: 14 days. */
export const INVITATION_LIFETIME_MS = 14 * 24 * 60 * 60 * 1000;

/** What every invitation token begins with, so that a leaked one is recognised. */
const PREFIX = 'sinv_';

/** Keeps these tokens apart from whatever else is derived from the root key. */
const LABEL = 'sluice invitation v1';

/** What the status keeps of an invitation: never its token. */
export interface IssuedInvitation {
  readonly tokenHash: string;
  /** RFC 3339. */
  readonly issuedAt: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

/**
 * The token of an invitation: `sinv_` and the base64url of HMAC-SHA-256 of the root key over label, UID of the
 * Integration and `issuedAt`, separated by NUL; 256 bits. Derived, so that a crash between the commit of its hash and
 * the mail loses nothing: the same one is made again.
 *
 * @param issuedAt RFC 3339, exactly as the status has it
 */
export function deriveInvitationToken(rootKey: Uint8Array, uid: string, issuedAt: string): string {
  const mac = createHmac('sha256', rootKey).update(`${LABEL}\0${uid}\0${issuedAt}`, 'utf8').digest('base64url');
  return PREFIX + mac;
}

/** What is kept of a token, and what one is found by: SHA-256 over the token's UTF-8 bytes, in lower-case hexadecimal. */
export function hashInvitationToken(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex');
}

/**
 * A new invitation.
 *
 * @param issuedAt RFC 3339, in whole seconds
 */
export function issueInvitation(rootKey: Uint8Array, uid: string, issuedAt: string): IssuedInvitation {
  const expiresAt = new Date(Date.parse(issuedAt) + INVITATION_LIFETIME_MS).toISOString().replace(/\.000Z$/, 'Z');
  return { tokenHash: hashInvitationToken(deriveInvitationToken(rootKey, uid, issuedAt)), issuedAt, expiresAt };
}

/** Whether the token of the invitation can still be derived: not after a change of the root key, nor by another's UID. */
export function isDerivable(rootKey: Uint8Array, uid: string, invitation: IssuedInvitation): boolean {
  return hashInvitationToken(deriveInvitationToken(rootKey, uid, invitation.issuedAt)) === invitation.tokenHash;
}
