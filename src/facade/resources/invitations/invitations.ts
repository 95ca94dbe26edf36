import { z } from 'zod';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import { publicIdField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { acceptInvitation } from './invitation-acceptance.ts';
import { findInvitation, InvitationToken, integrationName, whyAnswered } from './invitation-token.ts';

const Acceptance = z
  .strictObject({
    token: InvitationToken,
    accountPublicId: publicIdField('Account').optional().meta({
      description: 'An account that you own or administer. If this field is not set, your own Free account is used.',
    }),
  })
  .meta({ id: 'Acceptance' });

const AcceptedInvitation = z
  .object({
    integrationPublicId: publicIdField('Integration'),
    status: z.literal('Active').meta({ description: 'The integration is active.' }),
    workspacePublicId: publicIdField('Workspace').meta({
      description: 'The receiving workspace, which belongs to the account that accepted the invitation.',
    }),
    accountPublicId: publicIdField('Account').meta({
      description: 'The account that accepted the invitation. It pays for replays.',
    }),
    producerTenantPublicId: publicIdField('Workspace').meta({ description: 'The producer.' }),
    catalogPath: z.string().meta({ description: 'The path of the list of streams. Use GET to list the streams.' }),
    subscriptionsPath: z
      .string()
      .meta({ description: 'The path of the subscriptions. Use POST to subscribe to a stream.' }),
  })
  .meta({ id: 'AcceptedInvitation' });

const Refused = z.strictObject({ token: InvitationToken }).meta({ id: 'Decline' });

const DeclinedInvitation = z
  .object({
    integrationPublicId: publicIdField('Integration'),
    status: z.literal('Declined').meta({ description: 'The integration is closed.' }),
  })
  .meta({ id: 'DeclinedInvitation' });

const accept = defineRoute({
  method: 'POST',
  path: '/waas/invitations/accept',
  access: 'caller',
  operation: 'acceptInvitation',
  tag: 'Invitations',
  summary: 'Accept an invitation',
  description:
    'Accepts an invitation for your account. Anyone who has the token can accept it one time. The call creates a receiving workspace in the account and makes the integration Active. If you do not send `accountPublicId`, the call uses your own Free account and creates it if necessary. If you personally own another Free account, you must send its id (`free_account_exists`). If you repeat the call as the same owner, you receive the same response. If another person uses the token again, the response is `invitation_used`. In this case, the empty workspace and the Free account that were created for this person are kept.',
  body: Acceptance,
  answers: { 200: { description: 'The invitation is accepted and in force.', schema: AcceptedInvitation } },
  problems: ['forbidden', 'unknown_invitation', 'invitation_used', 'invitation_expired', 'free_account_exists'],
  async handle(facade, { identity, body }) {
    const { token, accountPublicId } = body;
    // Check the account first: callers who don't own it must not learn anything about the invitation.
    const named =
      accountPublicId === undefined ? undefined : (await facade.ownership.account(identity, accountPublicId)).name;
    const { integration, workspace, account } = await acceptInvitation(facade, identity, token, named);
    await facade.writer.waitFor('Integration', integration, 'Accepted');
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
  operation: 'declineInvitation',
  tag: 'Invitations',
  summary: 'Decline an invitation',
  description:
    'Declines an invitation permanently. Anyone who has the token can decline the invitation until it is accepted. If you repeat the call, you receive the same response.',
  body: Refused,
  answers: { 200: { description: 'Declined.', schema: DeclinedInvitation } },
  problems: ['unknown_invitation', 'invitation_used', 'invitation_expired'],
  async handle(facade, { body }) {
    const { writer } = facade;
    const applied = await writer.edit(async () => {
      const { integration, state } = await findInvitation(facade, body.token);
      if (state === 'Declined') return integration;
      const why = whyAnswered(state);
      if (why !== undefined) throw new Refusal(why);
      return writer.apply('Integration', integrationName(integration), {
        manager: FIELD_MANAGER.facadeDecline,
        before: integration,
        concern: ['declined'],
        spec: { declined: true },
        exactly: true,
      });
    });
    await writer.waitFor('Integration', applied);
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
