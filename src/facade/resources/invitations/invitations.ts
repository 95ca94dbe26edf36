import { z } from 'zod';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import { publicIdField } from '../../contract/fields.ts';
import { requireRole } from '../../contract/roles.ts';
import { defineRoute } from '../../contract/route.ts';
import { acrossTenants } from '../../objects/across-tenants.ts';
import { acceptInvitation } from './invitation-acceptance.ts';
import { assertInvited, findInvitation, InvitationToken, integrationName, whyAnswered } from './invitation-token.ts';

const Acceptance = z
  .strictObject({
    token: InvitationToken,
    accountPublicId: publicIdField('Account').optional().meta({
      description:
        'The account to use. You must be an Owner or Admin of this account. Defaults to your own Free account.',
    }),
  })
  .meta({ id: 'Acceptance' });

const AcceptedInvitation = z
  .object({
    integrationPublicId: publicIdField('Integration'),
    status: z.literal('Active').meta({ description: 'The integration is now active.' }),
    workspacePublicId: publicIdField('Workspace').meta({
      description: 'The receiving workspace, which belongs to the account that accepted the invitation.',
    }),
    accountPublicId: publicIdField('Account').meta({
      description: 'The account of the receiving workspace. Replays are charged to this account.',
    }),
    producerTenantPublicId: publicIdField('Workspace').meta({ description: 'The workspace of the producer.' }),
    catalogPath: z.string().meta({ description: 'The path where you can list streams using GET.' }),
    subscriptionsPath: z.string().meta({ description: 'The path where you can subscribe to a stream using POST.' }),
  })
  .meta({ id: 'AcceptedInvitation' });

const Refused = z.strictObject({ token: InvitationToken }).meta({ id: 'Decline' });

const DeclinedInvitation = z
  .object({
    integrationPublicId: publicIdField('Integration'),
    status: z.literal('Declined').meta({ description: 'The integration is now closed.' }),
  })
  .meta({ id: 'DeclinedInvitation' });

const accept = defineRoute({
  method: 'POST',
  path: '/waas/invitations/accept',
  access: 'caller',
  scope: 'waas:write',
  operation: 'acceptInvitation',
  cost: 10,
  tag: 'Invitations',
  summary: 'Accept an invitation',
  description: [
    "Accepts an invitation: creates a receiving workspace in your account, and changes the status of the integration to Active. `accountPublicId` defaults to your own Free account, which is created if you don't have one. If you already own a different Free account, specify its id (`free_account_exists`).",
    'Anyone with the token can accept, unless the operator has set SLUICE_INVITATION_REQUIRE_EMAIL. Your access token must then contain the invited email address (claims `email` and `email_verified`), or the response is `invitation_email_mismatch`.',
    'A token can be used once. If the same owner repeats the request, the response is the same. If anyone else sends the token, the response is `invitation_used`. An empty workspace and Free account that the call has created for them are kept.',
  ].join('\n\n'),
  body: Acceptance,
  answers: { 200: { description: 'The invitation has been accepted and is in force.', schema: AcceptedInvitation } },
  problems: [
    'forbidden',
    'insufficient_role',
    'invitation_email_mismatch',
    'unknown_invitation',
    'invitation_used',
    'invitation_expired',
    'free_account_exists',
  ],
  async handle(facade, { identity, body }) {
    const { token, accountPublicId } = body;
    // Check the account first because callers who don't own it must not receive any information about the invitation.
    const named = accountPublicId === undefined ? undefined : await facade.ownership.account(identity, accountPublicId);
    if (named !== undefined) requireRole(named.role, 'Admin');
    const { integration, workspace, account } = await acceptInvitation(facade, identity, token, named?.name);
    await acrossTenants(() => facade.writer.waitFor('Integration', integration, 'Accepted'));
    const { namespace, name } = integrationName(integration);
    const id = publicId('Integration', namespace, name);
    return {
      status: 200,
      body: {
        integrationPublicId: id,
        status: 'Active',
        workspacePublicId: tenantId(workspace),
        accountPublicId: publicId('Account', '', account),
        producerTenantPublicId: tenantId(namespace),
        catalogPath: `/waas/integrations/${id}/catalog`,
        subscriptionsPath: `/waas/integrations/${id}/subscriptions`,
      } satisfies z.output<typeof AcceptedInvitation>,
      about: { kind: 'Integration', namespace, name },
    };
  },
});

const decline = defineRoute({
  method: 'POST',
  path: '/waas/invitations/decline',
  access: 'caller',
  scope: 'waas:write',
  operation: 'declineInvitation',
  cost: 10,
  tag: 'Invitations',
  summary: 'Decline an invitation',
  description:
    'Permanently declines an invitation. Until the invitation has been accepted, anyone who could accept it can also decline it. Repeating the request results in the same response.',
  body: Refused,
  answers: { 200: { description: 'The invitation has been declined.', schema: DeclinedInvitation } },
  problems: ['invitation_email_mismatch', 'unknown_invitation', 'invitation_used', 'invitation_expired'],
  async handle(facade, { identity, body }) {
    const { writer } = facade;
    const attempt = async () => {
      const { integration, state } = await findInvitation(facade, body.token);
      if (state === 'Declined') return integration;
      const why = whyAnswered(state);
      if (why !== undefined) throw new Refusal(why);
      assertInvited(facade, identity, integration);
      return writer.apply('Integration', integrationName(integration), {
        manager: FIELD_MANAGER.facadeDecline,
        before: integration,
        concern: ['declined'],
        spec: { declined: true },
        exactly: true,
      });
    };
    const applied = await acrossTenants(async () => {
      const declined = await writer.edit(attempt);
      await writer.waitFor('Integration', declined);
      return declined;
    });
    const { namespace, name } = integrationName(applied);
    return {
      status: 200,
      body: {
        integrationPublicId: publicId('Integration', namespace, name),
        status: 'Declined',
      } satisfies z.output<typeof DeclinedInvitation>,
      about: { kind: 'Integration', namespace, name },
    };
  },
});

export const INVITATION_ROUTES = [accept, decline];
