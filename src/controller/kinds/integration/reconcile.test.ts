import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { deriveInvitationToken, hashInvitationToken, INVITATION_LIFETIME_MS } from '../../../core/ids/invitation.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { createDeliveries } from './deliveries.ts';
import { reconcileIntegration } from './reconcile.ts';

const workspace = objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined });
const NOW = '2026-01-02T03:04:05Z';
const DAY_MS = 24 * 60 * 60 * 1_000;
const invitedEmail = 'ada@partner.example';

const invited = (spec: Partial<Cached<'Integration'>['spec']> = {}, status?: object) =>
  objectOf<'Integration'>('globex', { invitedEmail, ...spec }, status === undefined ? {} : { status });

function reconcile(
  object: Cached<'Integration'>,
  wallMs = Date.parse(NOW),
  options: { namespaceDeleting?: boolean } = {},
) {
  const { context } = createTestContext({ Workspace: [workspace], Integration: [object] }, { wallMs, ...options });
  return reconcileIntegration(context)(object);
}

describe('an integration', () => {
  test('is invited with its first Ready condition, which does not wait for the email', async () => {
    const outcome = await reconcile(invited());
    expect(outcome.conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`)).toEqual([
      'Ready=True/Pending',
      'Accepted=False/Pending',
    ]);
    const token = deriveInvitationToken(Buffer.alloc(32, 7), 'uid-globex', NOW);
    expect(outcome.status?.invitation).toEqual({
      tokenHash: hashInvitationToken(token),
      issuedAt: NOW,
      expiresAt: '2026-01-16T03:04:05Z',
    });
    expect(outcome.requeueAfterMs).toBe(INVITATION_LIFETIME_MS);
    expect(JSON.stringify(outcome)).not.toContain(token);
    expect(JSON.stringify(outcome)).not.toContain(invitedEmail);
  });

  test('is invited once: later turns do not change anything until the invitation ends', async () => {
    const { status } = await reconcile(invited());
    const later = await reconcile(invited({}, status), Date.parse(NOW) + 13 * DAY_MS);
    expect(later.status).toEqual(status);
    expect(later.requeueAfterMs).toBe(DAY_MS);
    const end = await reconcile(invited({}, status), Date.parse(NOW) + 14 * DAY_MS);
    expect(end.conditions.at(-1)).toMatchObject({ type: 'Accepted', reason: 'Expired' });
    expect(end.status).toEqual(status);
    expect(end.requeueAfterMs).toBeUndefined();
  });

  test('is invited again after its status was lost', async () => {
    const { status } = await reconcile(invited());
    const anew = await reconcile(invited({}, { conditions: [] }), Date.parse(NOW) + DAY_MS);
    expect(anew.status?.invitation?.issuedAt).toBe('2026-01-03T03:04:05Z');
    expect(anew.status?.invitation?.tokenHash).not.toBe(status?.invitation?.tokenHash);
  });

  test.each<[string, Partial<Cached<'Integration'>['spec']>]>([
    ['granted directly', { workspace: 'globex' }],
    ['declined', { declined: true }],
    ['revoked', { revoked: true }],
  ])('is not invited when it is %s', async (_what, spec) => {
    expect((await reconcile(invited(spec))).status?.invitation).toBeUndefined();
  });

  test.each<[string, string, string | undefined, string[]]>([
    [
      'accepted over REST',
      'sluice-facade/acceptance',
      undefined,
      ['Accepted=True/InvitationAccepted', 'Admitted=True/InvitationAccepted'],
    ],
    [
      'also granted in Git by the producer',
      'argocd',
      undefined,
      ['Accepted=True/DirectGrant', 'Admitted=False/WorkspaceNotAdmitting'],
    ],
    [
      'accepted before by its status',
      'argocd',
      'InvitationAccepted',
      ['Accepted=True/InvitationAccepted', 'Admitted=True/InvitationAccepted'],
    ],
  ])('with an address and a workspace: %s', async (_what, manager, before, expected) => {
    const reported = { type: 'Accepted', status: 'True', reason: before, message: 'm' };
    const object = invited({ workspace: 'globex' }, { conditions: before === undefined ? [] : [reported] });
    const { context } = createTestContext(
      { Workspace: [workspace], Integration: [object] },
      { wallMs: Date.parse(NOW) },
    );
    const managedFields = [
      { manager: 'kubectl', fieldsV1: { 'f:spec': { 'f:invitedEmail': {} } } },
      { manager, fieldsV1: { 'f:spec': { 'f:workspace': {} } } },
    ];
    const client = {
      ...context.client,
      get: async () => ({ metadata: { managedFields } }),
    } as unknown as Context['client'];
    const { conditions } = await reconcileIntegration({ ...context, client })(object);
    expect(conditions.slice(1).map(({ type, status, reason }) => `${type}=${status}/${reason}`)).toEqual(expected);
  });

  test('has the same status for a missing workspace and for one without a subscription', async () => {
    const initech = objectOf<'Workspace'>('initech', { account: 'initech' }, { namespace: undefined });
    const subscriptionOf = (namespace: string, integration: string) =>
      objectOf<'Subscription'>(
        'sub',
        { producer: 'acme', integration, stream: 'orders', ordering: 'ByGroupKey', deletionPolicy: 'Retain' },
        { namespace },
      );
    const reported = async (name: string, ...subscriptions: Cached<'Subscription'>[]) => {
      const object = objectOf<'Integration'>('globex', { workspace: name });
      const { context } = createTestContext({ Workspace: [workspace, initech], Subscription: subscriptions });
      const { conditions } = await reconcileIntegration(context)(object);
      expect(conditions[0]).toMatchObject({ type: 'Ready', status: 'True', reason: 'Active' });
      const { status, reason, message } = conditions.find(({ type }) => type === 'Admitted') ?? {};
      return `${status}/${reason}: ${message?.replaceAll(name, 'W')}`;
    };
    const missing = await reported('nowhere');
    expect(missing).toMatch(
      /^False\/WorkspaceNotAdmitting: workspace W does not have a Subscription that uses this integration/,
    );
    expect(await reported('initech')).toBe(missing);
    expect(await reported('initech', subscriptionOf('initech', 'another'), subscriptionOf('umbrella', 'globex'))).toBe(
      missing,
    );
    expect(await reported('initech', subscriptionOf('initech', 'globex'))).toMatch(/^True\/Subscribed/);
  });

  test('in a namespace that does not belong to the workspace does not send an invitation, and waits', async () => {
    const outcome = await reconcile(invited(), Date.parse(NOW), { namespaceDeleting: true });
    expect(outcome.status?.invitation).toBeUndefined();
    expect(outcome.conditions[0]).toMatchObject({ type: 'Ready', status: 'Unknown', reason: 'WaitingForWorkspace' });
  });

  test('without a Workspace does not send an invitation', async () => {
    const { context } = createTestContext({ Integration: [invited()] }, { wallMs: Date.parse(NOW) });
    const outcome = await reconcileIntegration(context)(invited());
    expect(outcome.status?.invitation).toBeUndefined();
    expect(outcome.conditions[0]).toMatchObject({ reason: 'WaitingForWorkspace' });
  });

  test('contains the time at which this invitation was sent as soon as it is known', async () => {
    const { status } = await reconcile(invited());
    const object = invited({}, status);
    const deliveries = createDeliveries();
    const { context } = createTestContext({ Workspace: [workspace] }, { wallMs: Date.parse(NOW) });
    const say = async () => (await reconcileIntegration({ ...context, deliveries })(object)).status?.invitation?.sentAt;
    const sent = { sentAt: NOW, as: 'Sent' } as const;
    deliveries.note('acme/globex', { uid: 'uid-of-a-namesake', issuedAt: NOW }, sent);
    expect(await say()).toBeUndefined();
    deliveries.note('acme/globex', { uid: 'uid-globex', issuedAt: '2026-01-01T00:00:00Z' }, sent);
    expect(await say()).toBeUndefined();
    deliveries.note('acme/globex', { uid: 'uid-globex', issuedAt: NOW }, sent);
    expect(await say()).toBe(NOW);
  });
});

test('an integration that has ended is closed even if the Secrets of its workspace cannot be read', async () => {
  const settles = async (spec: Partial<Cached<'Integration'>['spec']>) => {
    const { context, inForce } = createTestContext({ Workspace: [workspace] });
    const secretAccess = { ...context.secretAccess, knows: () => false };
    await reconcileIntegration({ ...context, secretAccess })(invited(spec));
    return inForce;
  };
  expect(await settles({ revoked: true })).toEqual(['acme globex, closed']);
  expect(await settles({})).toEqual(['acme globex']);
});
