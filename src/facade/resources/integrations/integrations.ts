import { z } from 'zod';
import { emailAddress } from '../../../api/strings.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import { findOwned, unknownObject } from '../../objects/owned-objects.ts';
import {
  IntegrationEntry,
  IntegrationStatus,
  InvitedIntegration,
  integrationEntry,
  invitedIntegration,
} from './integration-entry.ts';
import { inviteByAddress } from './invitation-issue.ts';

const Invite = z
  .strictObject({
    producerTenantPublicId: publicIdField('Workspace'),
    email: emailAddress().meta({
      description:
        "The partner's email address, up to 254 characters long. Anyone who receives this email can accept the invitation, unless the operator has set SLUICE_INVITATION_REQUIRE_EMAIL.",
      format: 'email',
      example: 'ada@example.com',
    }),
  })
  .meta({ id: 'Invite' });

const LOCATION = { Location: 'The path of the integration.' };

const invite = defineRoute({
  method: 'POST',
  path: '/waas/integrations',
  access: 'producer',
  scope: 'waas:write',
  operation: 'inviteIntegration',
  tag: 'Integrations',
  summary: 'Invite a partner',
  description:
    'Invites a partner by email address (not case-sensitive). If there is already an open or accepted invitation for this address, it is returned with status 200. A new invitation is only created if the previous invitation has expired or was declined or revoked. The email may be sent some time after the response. Within 24 hours, a workspace can send one invitation to an address, even if that invitation was revoked or deleted. All workspaces of an account together can send `invitationMailsPerDay` invitations. Beyond these limits, the response is `mail_limit_reached` with the time of the next possible invitation. Identical requests made at the same time can each return 201 with the same body.',
  body: Invite,
  answers: {
    201: { description: 'The partner has been invited.', schema: InvitedIntegration, headers: LOCATION },
    200: {
      description: 'There is already an open or accepted invitation for this email address.',
      schema: InvitedIntegration,
      headers: LOCATION,
    },
  },
  problems: ['limit_reached', 'mail_limit_reached'],
  async handle(facade, { tenant, body }) {
    const { integration, made } = await inviteByAddress(facade, tenant, body.email);
    const inForce = await facade.writer.waitFor('Integration', integration);
    const answer = invitedIntegration(inForce, facade.wallMs());
    return {
      status: made ? 201 : 200,
      body: answer,
      headers: { location: `/waas/producer/${tenant.publicId}/integrations/${answer.publicId}` },
      about: { kind: 'Integration', namespace: tenant.name, name: integration.metadata.name },
    };
  },
});

const listIntegrations = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/integrations',
  access: 'producer',
  scope: 'waas:read',
  operation: 'listIntegrations',
  tag: 'Integrations',
  summary: "List the producer's integrations",
  description:
    "Returns a list of integrations, oldest first. For direct grants, `invitedEmail` is null because they don't have an invitation.",
  query: PageQuery.extend({
    status: IntegrationStatus.optional().meta({
      description: 'Only return integrations with the given status. Defaults to all integrations.',
    }),
  }),
  answers: { 200: { description: 'A list of integrations.', schema: pageOf(IntegrationEntry) } },
  problems: ['malformed_cursor'],
  async handle({ caches, wallMs }, { tenant, query }) {
    const nowMs = wallMs();
    const { status } = query;
    const { data, nextCursor } = paginate(
      ['integrations', tenant.name],
      caches.list('Integration', tenant.name),
      ({ metadata }) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`,
      query,
      {
        isWanted: integration =>
          integration.metadata.deletionTimestamp === undefined &&
          (status === undefined || integrationStatus(integration, nowMs) === status),
      },
    );
    return { status: 200, body: { data: data.map(each => integrationEntry(each, nowMs)), nextCursor } };
  },
});

const getIntegration = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/integrations/{integration}',
  access: 'producer',
  scope: 'waas:read',
  operation: 'getIntegration',
  tag: 'Integrations',
  summary: 'Retrieve an integration',
  answers: { 200: { description: 'The requested integration.', schema: IntegrationEntry } },
  problems: ['unknown_resource'],
  async handle(facade, { tenant, params }) {
    const integration = await findOwned(facade.caches, 'Integration', tenant.name, params.integration);
    return { status: 200, body: integrationEntry(integration, facade.wallMs()) };
  },
});

const revoke = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/integrations/{integration}/revoke',
  access: 'producer',
  scope: 'waas:write',
  operation: 'revokeIntegration',
  tag: 'Integrations',
  summary: 'Revoke an integration',
  description:
    'Permanently ends an integration, whether or not it has been accepted. After the response, Sluice routes no more events to the partner and starts no new attempts. You can invite the same email address again later.',
  closes: true,
  answers: { 204: { description: 'The integration has been revoked.' } },
  problems: ['unknown_resource'],
  async handle(facade, { tenant, params }) {
    const { caches, writer } = facade;
    const { metadata } = await findOwned(caches, 'Integration', tenant.name, params.integration);
    const name = { namespace: tenant.name, name: metadata.name };
    const applied = await writer.edit(async () => {
      const before = await caches.live('Integration', name);
      // If the object doesn't exist, we don't want to create it here just to revoke it.
      if (before === undefined || before.metadata.deletionTimestamp !== undefined) {
        throw unknownObject('Integration');
      }
      return writer.apply('Integration', name, {
        manager: FIELD_MANAGER.facadeRevocation,
        before,
        concern: ['revoked'],
        spec: { revoked: true },
      });
    });
    await writer.waitFor('Integration', applied);
    return { status: 204, about: { kind: 'Integration', ...name } };
  },
});

export const INTEGRATION_ROUTES = [invite, listIntegrations, getIntegration, revoke];
