import { describe, expect, test } from 'vitest';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import type { Cached } from '../../caches/cached.ts';
import {
  IntegrationEntry,
  InvitedIntegration,
  integrationEntry,
  invitedIntegration,
  isOpen,
} from './integration-entry.ts';

const NOW_MS = Date.parse('2026-05-01T00:00:00Z');
const metadata = { namespace: 'shop', name: 'int-1', uid: 'u', resourceVersion: '1' };
const invitation = { tokenHash: 'a'.repeat(64), issuedAt: '2026-04-20T00:00:00Z', expiresAt: '2026-05-04T00:00:00Z' };

function integration(spec: Cached<'Integration'>['spec'], expiresAt = invitation.expiresAt): Cached<'Integration'> {
  return { metadata, spec, status: { invitation: { ...invitation, expiresAt } } };
}

describe('the state of an integration at a given time', () => {
  const invited = { invitedEmail: 'ada@example.com' };
  test.each([
    ['Pending', true, integration(invited)],
    ['Pending', true, integration(invited, '2026-05-01T00:00:00.001Z')],
    ['Expired', false, integration(invited, '2026-05-01T00:00:00Z')],
    ['Active', true, integration({ ...invited, workspace: 'partner' }, '2026-04-21T00:00:00Z')],
    ['Declined', false, integration({ ...invited, declined: true })],
    ['Revoked', false, integration({ ...invited, workspace: 'partner', revoked: true })],
    ['Pending', true, { metadata, spec: invited }],
  ] as const)('%s, open: %s', (state, open, object) => {
    expect(integrationStatus(object, NOW_MS)).toBe(state);
    expect(isOpen(object, NOW_MS)).toBe(open);
  });
});

test('an invitation has the fields of the specification, without its token', () => {
  const answer = invitedIntegration(integration({ invitedEmail: 'Ada@example.com' }), NOW_MS);
  expect(Object.keys(answer)).toEqual(['publicId', 'invitedEmail', 'status']);
  expect(InvitedIntegration.parse(answer)).toEqual(answer);
  expect(answer.invitedEmail).toBe('Ada@example.com');
});

test('an entry of the list contains times and the receiving workspace, but no hash', () => {
  const entry = integrationEntry(integration({ workspace: 'partner' }), NOW_MS);
  expect(IntegrationEntry.parse(entry)).toEqual(entry);
  expect(entry).toMatchObject({
    name: 'int-1',
    invitedEmail: null,
    receivingTenantPublicId: expect.stringMatching(/^ten_/),
    issuedAt: '2026-04-20T00:00:00Z',
    sentAt: null,
  });
  expect(JSON.stringify(entry)).not.toContain('aaaa');
});
