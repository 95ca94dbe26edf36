import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { deriveInvitationToken } from '../../../core/ids/invitation.ts';
import { assertInvited, InvitationToken, whyAnswered } from './invitation-token.ts';

test.each([
  ['Pending', undefined],
  ['Expired', 'invitation_expired'],
  ['Active', 'invitation_used'],
  ['Declined', 'invitation_used'],
  ['Revoked', 'invitation_used'],
] as const)('an invitation that is %s: %s', (state, why) => {
  expect(whyAnswered(state)).toBe(why);
});

test('every issued token can be sent, and no longer or shorter text', () => {
  for (let n = 0; n < 50; n++) {
    const token = deriveInvitationToken(randomBytes(32), 'uid', '2026-05-01T00:00:00Z');
    expect(InvitationToken.safeParse(token).success).toBe(true);
    expect(InvitationToken.safeParse(`${token}A`).success).toBe(false);
    expect(InvitationToken.safeParse(token.slice(0, -1)).success).toBe(false);
  }
});

test.each([
  ['the same address', 'kim@example.com', true],
  ['the address in another case', 'KIM@Example.com', true],
  ['an address with the Kelvin sign', '\u212aim@example.com', false],
  ['an address with a dotted capital I', 'k\u0130m@example.com', false],
  ['an address with a fullwidth letter', '\uff2bim@example.com', false],
  ['no address', undefined, false],
])('a caller with %s is checked against the invited address', (_what, email, invited) => {
  const check = () =>
    assertInvited({ requireInvitedEmail: true }, { email }, { spec: { invitedEmail: 'kim@example.com' } });
  if (invited) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ code: 'invitation_email_mismatch' }));
});
