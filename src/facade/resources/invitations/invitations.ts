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
    accountPublicId: publicIdField('Account')
      .optional()
      .meta({ description: 'An account that you own or administer. Absent: your own Free account.' }),
  })
  .meta({ id: 'Acceptance' });

const AcceptedInvitation = z
  .object({
    integrationPublicId: publicIdField('Integration'),
    status: z.literal('Active').meta({ description: 'The integration is active.' }),
    workspacePublicId: publicIdField('Workspace').meta({
      description: 'The receiving workspace, on the account that accepted.',
    }),
    accountPublicId: publicIdField('Account').meta({ description: 'The account that accepted. It pays for replays.' }),
    producerTenantPublicId: publicIdField('Workspace').meta({ description: 'The producer.' }),
    catalogPath: z.string().meta({ description: 'Next step: list the streams (GET).' }),
    subscriptionsPath: z.string().meta({ description: 'Then subscribe to them (POST).' }),
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
    'Anyone with the token can accept it once, for their own account. The call creates a receiving workspace there and makes the integration Active. Without `accountPublicId` it uses your own Free account, and creates it if needed. If you own another Free account in person, you must name it (`free_account_exists`). Repeating the call as the same owner returns the same answer. A second person gets `invitation_used`; the empty workspace and the Free account that the call created for them stay.',
  body: Acceptance,
  answers: { 200: { description: 'Accepted, and in force.', schema: AcceptedInvitation } },
  problems: ['forbidden', 'unknown_invitation', 'invitation_used', 'invitation_expired', 'free_account_exists'],
  async handle(facade, { identity, body }) {
    const { token, accountPublicId } = body;
    // Check the account first: a caller who does not own it must learn nothing about the invitation.
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
    'Permanent. Anyone with the token can decline the invitation until it is accepted. Repeating the call returns the same answer.',
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
