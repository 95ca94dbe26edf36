import { z } from 'zod';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { isReceiverOf } from '../../../core/ids/invitation-names.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Cached } from '../../objects/cached.ts';
import type { Caches } from '../../objects/caches.ts';
import { publicIdOf } from '../../objects/indexes.ts';
import { workspacesOf } from '../../objects/objects-of-caller.ts';
import { IntegrationStatus } from '../integrations/integration-entry.ts';

const PartnerIntegration = z
  .object({
    publicId: publicIdField('Integration'),
    producerTenantPublicId: publicIdField('Workspace').meta({ description: 'The producer.' }),
    receivingTenantPublicId: publicIdField('Workspace').meta({ description: 'Your receiving workspace.' }),
    status: IntegrationStatus,
  })
  .meta({ id: 'PartnerIntegration' });

/** Returns an integration as it is shown to the partner. `recipient` is the receiving workspace's name. */
function partnerIntegration(
  { metadata, spec, status }: Cached<'Integration'>,
  recipient: string,
  nowMs: number,
): z.output<typeof PartnerIntegration> {
  const { namespace = '', name } = metadata;
  return {
    publicId: publicId('Integration', namespace, name),
    producerTenantPublicId: tenantId(namespace),
    receivingTenantPublicId: tenantId(recipient),
    status: integrationStatus({ spec, status }, nowMs),
  };
}

/**
 * Returns the integrations of a receiving workspace that its owner has agreed to, by accepting an invitation or by
 * subscribing. Anyone can create an Integration with the workspace's name.
 */
function agreedIntegrations(
  caches: Pick<Caches, 'by' | 'list'>,
  { metadata: { name }, spec: { account } }: Cached<'Workspace'>,
): Cached<'Integration'>[] {
  const used = new Set(caches.list('Subscription', name).map(({ spec }) => `${spec.producer}/${spec.integration}`));
  return caches.by('Integration', 'workspace', name).filter(({ metadata }) => {
    const { namespace = '', name: integration, deletionTimestamp } = metadata;
    if (deletionTimestamp !== undefined) return false;
    return used.has(`${namespace}/${integration}`) || isReceiverOf(name, namespace, integration, account);
  });
}

const listPartnerIntegrations = defineRoute({
  method: 'GET',
  path: '/waas/integrations',
  access: 'caller',
  scope: 'waas:read',
  operation: 'listPartnerIntegrations',
  tag: 'Receiving',
  summary: 'List the integrations of your receiving workspaces',
  description:
    'This includes integrations that you have accepted, even after they have ended. Integrations with a direct grant are only included while a subscription of your receiving workspace uses them, because producers can grant access to any workspace. To subscribe, use the id that the producer gives you.',
  query: PageQuery,
  answers: { 200: { description: 'A list of integrations, sorted by public id.', schema: pageOf(PartnerIntegration) } },
  problems: ['malformed_cursor'],
  async handle({ caches, wallMs }, { identity, query }) {
    const nowMs = wallMs();
    const integrations = workspacesOf(caches, identity).flatMap(([workspace]) =>
      agreedIntegrations(caches, workspace).map(each => [each, workspace.metadata.name] as const),
    );
    const { data, nextCursor } = paginate(integrations, ([each]) => publicIdOf('Integration', each), query);
    const entries = data.map(([each, recipient]) => partnerIntegration(each, recipient, nowMs));
    return { status: 200, body: { data: entries, nextCursor } };
  },
});

const getPartnerIntegration = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}',
  access: 'recipient',
  scope: 'waas:read',
  operation: 'getPartnerIntegration',
  tag: 'Receiving',
  summary: 'Retrieve an integration as its partner',
  answers: { 200: { description: 'The requested integration.', schema: PartnerIntegration } },
  async handle({ wallMs }, { integration: { object, recipient } }) {
    return { status: 200, body: partnerIntegration(object, recipient.name, wallMs()) };
  },
});

export const PARTNER_INTEGRATION_ROUTES = [listPartnerIntegrations, getPartnerIntegration];
