import { describe, expect, test } from 'vitest';
import { keyRingOf } from '../../../core/delivery/key-ring.ts';
import { deriveInvitationToken, hashInvitationToken, issueInvitation } from '../../../core/ids/invitation.ts';
import { type InvitationTaskFacts, planInvitationTask } from './invitation-task.ts';

const rootKey = Buffer.alloc(32, 7);
const issued = issueInvitation(rootKey, 'uid', '2026-01-02T03:04:05Z');
const token = deriveInvitationToken(rootKey, 'uid', issued.issuedAt);
const to = 'ada@partner.example';
const withReason = (reason: string) => ({
  conditions: [
    {
      type: 'InvitationSent',
      status: 'True' as const,
      reason,
      message: 'm',
      observedGeneration: 1,
      lastTransitionTime: issued.issuedAt,
    },
  ],
});
const sent = { ...issued, sentAt: '2026-01-02T03:04:06Z' };
const facts: InvitationTaskFacts = {
  uid: 'uid',
  spec: { invitedEmail: to },
  status: { invitation: issued },
  secretSha256: undefined,
  delivery: undefined,
  hasMailServer: true,
  keys: keyRingOf(rootKey),
  nowMs: Date.parse(issued.issuedAt) + 1_000,
};

describe('the token of an invitation', () => {
  test('is emailed to the invited address, and matches the hash in the status', () => {
    const task = planInvitationTask(facts);
    expect(task).toEqual({ do: 'mail', to, token, issuedAt: issued.issuedAt, expiresAt: issued.expiresAt });
    expect(hashInvitationToken(token)).toBe(issued.tokenHash);
  });

  test('is written to a Secret if there is no mail server', () => {
    expect(planInvitationTask({ ...facts, hasMailServer: false })).toMatchObject({
      do: 'write-secret',
      token,
      again: false,
    });
  });

  test.each<[string, Partial<InvitationTaskFacts>]>([
    ['before its hash is committed', { status: undefined }],
    ['when half of the status is lost', { status: { invitation: { ...issued, expiresAt: undefined } } }],
    ['when it is not the one that the hash is of', { keys: keyRingOf(Buffer.alloc(32, 8)) }],
    ['when it was sent', { status: { invitation: sent, ...withReason('Sent') } }],
    ['when it was sent and the status does not show it yet', { delivery: { sentAt: sent.sentAt, as: 'Sent' } }],
    ['once it is accepted', { spec: { invitedEmail: to, workspace: 'globex' } }],
    ['once it is declined', { spec: { invitedEmail: to, declined: true } }],
    ['once it is revoked', { spec: { invitedEmail: to, revoked: true } }],
    ['once it has ended', { nowMs: Date.parse(issued.expiresAt) }],
    ['of a direct grant', { spec: { workspace: 'globex' }, status: {} }],
  ])('is not sent %s', (_when, change) => {
    for (const hasMailServer of [true, false]) {
      expect(planInvitationTask({ ...facts, hasMailServer, ...change })).toEqual({ do: 'nothing' });
    }
  });

  test('is sent until the last moment', () => {
    expect(planInvitationTask({ ...facts, nowMs: Date.parse(issued.expiresAt) - 1 }).do).toBe('mail');
  });

  test('is tried again after a failure', () => {
    const delivery = { failed: 'SmtpFailed', code: '451' } as const;
    expect(planInvitationTask({ ...facts, delivery }).do).toBe('mail');
  });
});

describe('the Secret with a token', () => {
  const written = { status: { invitation: sent, ...withReason('SecretWritten') } };
  test.each<[string, Partial<InvitationTaskFacts>, string]>([
    ['is left alone while it is right', { ...written, secretSha256: issued.tokenHash }, 'nothing'],
    ['is written again if it was deleted or emptied', written, 'write-secret'],
    ['is written again if it was changed', { ...written, secretSha256: 'ab'.repeat(32) }, 'write-secret'],
    ['is not written in addition to an email', { status: { invitation: sent, ...withReason('Sent') } }, 'nothing'],
    [
      'is not written with a token that cannot be accepted',
      { ...written, keys: keyRingOf(Buffer.alloc(32, 8)) },
      'nothing',
    ],
    ['is emptied when it is accepted', { secretSha256: 'x', spec: { workspace: 'globex' } }, 'empty-secret'],
    ['is emptied when it is revoked', { secretSha256: 'x', spec: { invitedEmail: to, revoked: true } }, 'empty-secret'],
    ['is emptied when it has ended', { secretSha256: 'x', nowMs: Date.parse(issued.expiresAt) }, 'empty-secret'],
    ['is not made to be empty', { spec: { workspace: 'globex' } }, 'nothing'],
  ])('%s', (_what, change, task) => {
    for (const hasMailServer of [true, false]) {
      expect(planInvitationTask({ ...facts, hasMailServer, ...change }).do).toBe(task);
    }
  });

  test('that is restored is not another invitation', () => {
    expect(planInvitationTask({ ...facts, ...written })).toMatchObject({ do: 'write-secret', token, again: true });
  });
});
