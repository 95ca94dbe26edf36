import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { signingSecret } from '../delivery/signing-secret.ts';
import { deriveInvitationToken, findInvitationToken, hashInvitationToken, issueInvitation } from './invitation.ts';

const rootKey = Buffer.alloc(32, 7);
const uid = '0b6c0f0e-9a1b-4c57-8a77-5d7b1e8b2a10';
const issuedAt = '2026-01-02T03:04:05Z';

describe('an invitation token', () => {
  const token = deriveInvitationToken(rootKey, uid, issuedAt);

  test('is the same in every process and release', () => {
    expect(token).toBe('sinv_-OIsQuTVIlMuEdGlVq4pLddh8Ty5rlr1DxbkWeLFyFM');
  });

  test('has 256 bits after its prefix, and does not need to be escaped in a URL', () => {
    expect(token).toMatch(/^sinv_[A-Za-z0-9_-]{43}$/);
    expect(Buffer.from(token.slice(5), 'base64url')).toHaveLength(32);
    expect(encodeURIComponent(token)).toBe(token);
  });

  test.each([
    ['root key', deriveInvitationToken(Buffer.alloc(32, 8), uid, issuedAt)],
    ['Integration', deriveInvitationToken(rootKey, uid.replace('0b', '0c'), issuedAt)],
    ['time', deriveInvitationToken(rootKey, uid, '2026-01-02T03:04:06Z')],
    ['split between the two', deriveInvitationToken(rootKey, uid + issuedAt[0], issuedAt.slice(1))],
  ])('differs by %s', (_what, other) => {
    expect(other).not.toBe(token);
  });

  test('differs from all other values that are derived from the root key', () => {
    const bytes = Buffer.from(token.slice(5), 'base64url').toString('base64');
    expect(signingSecret({ rootKey, subscriptionId: uid, salt: issuedAt }, 1)).not.toContain(bytes);
  });

  test('is found by the SHA-256 of its text', () => {
    expect(hashInvitationToken(token)).toBe(createHash('sha256').update(token).digest('hex'));
    expect(hashInvitationToken(token)).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('an invitation', () => {
  test('can be accepted for 14 days', () => {
    expect(issueInvitation(rootKey, uid, issuedAt)).toEqual({
      tokenHash: hashInvitationToken(deriveInvitationToken(rootKey, uid, issuedAt)),
      issuedAt,
      expiresAt: '2026-01-16T03:04:05Z',
    });
  });

  test('can be sent by any process with the root key that issued it', () => {
    const invitation = issueInvitation(rootKey, uid, issuedAt);
    const [keys, others] = [[{ secret: rootKey }], [{ secret: Buffer.alloc(32, 8) }]];
    const token = deriveInvitationToken(rootKey, uid, issuedAt);
    expect(findInvitationToken(keys, uid, invitation)).toBe(token);
    expect(findInvitationToken([...others, ...keys], uid, invitation)).toBe(token);
    expect(findInvitationToken(others, uid, invitation)).toBeUndefined();
    expect(findInvitationToken(keys, 'uid-of-another', invitation)).toBeUndefined();
    expect(findInvitationToken(keys, uid, { ...invitation, issuedAt: '2026-01-02T03:04:06Z' })).toBeUndefined();
  });
});
