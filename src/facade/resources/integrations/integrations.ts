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
        'The email address of the partner, with at most 254 characters. Anyone who receives the email can accept the invitation.',
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
  operation: 'inviteIntegration',
  tag: 'Integrations',
  summary: 'Invite a partner',
  description:
    'Sends an invitation to an email address, which is not case-sensitive. If the address already has an open or accepted invitation, the call returns it with status 200. If the previous invitation was declined or revoked or has expired, the call creates a new one. The call returns after the invitation is issued, and the email is sent later. If you send several identical calls at the same time, more than one of them can return 201 with the same body.',
  body: Invite,
  answers: {
    201: { description: 'Invited.', schema: InvitedIntegration, headers: LOCATION },
    200: {
      description: 'The email address already has an open or accepted invitation.',
      schema: InvitedIntegration,
      headers: LOCATION,
    },
  },
  async handle(facade, { tenant, body }) {
    const { integration, made } = await inviteByAddress(facade, tenant.name, body.email);
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
  operation: 'listIntegrations',
  tag: 'Integrations',
  summary: "List the producer's integrations",
  description:
    'Returns the integrations with the oldest first. Direct grants do not have an invitation, so their `invitedEmail` is null.',
  query: PageQuery.extend({
    status: IntegrationStatus.optional().meta({
      description: 'Returns only integrations with this status. By default, all integrations are returned.',
    }),
  }),
  answers: { 200: { description: 'A page of integrations.', schema: pageOf(IntegrationEntry) } },
  problems: ['malformed_cursor'],
  async handle({ caches, wallMs }, { tenant, query }) {
    const nowMs = wallMs();
    const { status } = query;
    const wanted = caches
      .list('Integration', tenant.name)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .filter(integration => status === undefined || integrationStatus(integration, nowMs) === status);
    const { data, nextCursor } = paginate(
      wanted,
      ({ metadata }) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`,
      query,
    );
    return { status: 200, body: { data: data.map(each => integrationEntry(each, nowMs)), nextCursor } };
  },
});

const getIntegration = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/integrations/{integration}',
  access: 'producer',
  operation: 'getIntegration',
  tag: 'Integrations',
  summary: 'Read one integration',
  answers: { 200: { description: 'The integration.', schema: IntegrationEntry } },
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
  operation: 'revokeIntegration',
  tag: 'Integrations',
  summary: 'Revoke an integration',
  description:
    'Ends an accepted or pending integration permanently. After the response, no more events are routed to the partner and no more attempts start. You can invite the same email address again.',
  closes: true,
  answers: { 204: { description: 'The integration is revoked.' } },
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
