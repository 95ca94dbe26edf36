import { z } from 'zod';
import { tenantId } from '../../../core/ids/ids.ts';
import { isReceiverOf } from '../../../core/ids/invitation-names.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Caches } from '../../caches/caches.ts';
import { integrationIdOf } from '../../caches/indexes.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import { workspacesOf } from '../../objects/objects-of-caller.ts';
import { endedGrant, type Grant, isGrantedTo } from '../../objects/ownership.ts';
import { IntegrationStatus } from '../integrations/integration-entry.ts';

const PartnerIntegration = z
  .object({
    publicId: publicIdField('Integration'),
    producerTenantPublicId: publicIdField('Workspace').meta({ description: 'The workspace of the producer.' }),
    receivingTenantPublicId: publicIdField('Workspace').meta({ description: 'Your receiving workspace.' }),
    status: IntegrationStatus,
  })
  .meta({ id: 'PartnerIntegration' });

/** An integration of a producer, with its receiving workspace. */
interface Received {
  readonly producer: string;
  readonly name: string;
  readonly object: Grant;
  readonly recipient: string;
}

/** Returns an integration as it is shown to the partner. */
function partnerIntegration(
  { producer, name, object, recipient }: Received,
  nowMs: number,
): z.output<typeof PartnerIntegration> {
  return {
    publicId: integrationIdOf(producer, name),
    producerTenantPublicId: tenantId(producer),
    receivingTenantPublicId: tenantId(recipient),
    status: integrationStatus(object, nowMs),
  };
}

/**
 * Returns the integrations of a receiving workspace that its owner has agreed to, by accepting an invitation or by
 * subscribing. Anyone can create an Integration with the name of the workspace. An integration that the producer has
 * deleted is included for as long as a subscription that it has admitted exists.
 */
function agreedIntegrations(
  caches: Pick<Caches, 'by' | 'get' | 'list'>,
  { metadata: { name: recipient }, spec: { account } }: Cached<'Workspace'>,
): Received[] {
  const subscriptions = caches.list('Subscription', recipient);
  const used = new Set(subscriptions.map(({ spec }) => `${spec.producer}/${spec.integration}`));
  const granted = caches.by('Integration', 'workspace', recipient).flatMap((object): Received[] => {
    const { namespace: producer = '', name, deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined) return [];
    const isAgreed = used.has(`${producer}/${name}`) || isReceiverOf(recipient, producer, name, account);
    return isAgreed ? [{ producer, name, object, recipient }] : [];
  });
  const ended = new Map<string, Received>();
  for (const { spec, status } of subscriptions) {
    const { producer, integration: name } = spec;
    if (status?.admittedAt === undefined) continue;
    if (isGrantedTo(caches.get('Integration', { namespace: producer, name }), recipient)) continue;
    ended.set(`${producer}/${name}`, { producer, name, object: endedGrant(recipient), recipient });
  }
  return [...granted, ...ended.values()];
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
    'Returns the integrations that you have accepted, even after they have ended. An integration that the producer has deleted has the status Revoked. Such an integration is included until you have deleted its subscriptions. Integrations with a direct grant are only included while a subscription of your receiving workspace uses them, because producers can grant access to any workspace. To subscribe, use the id that the producer gives you.',
  query: PageQuery,
  answers: { 200: { description: 'A list of integrations, sorted by public id.', schema: pageOf(PartnerIntegration) } },
  problems: ['malformed_cursor'],
  async handle({ caches, wallMs }, { identity, query }) {
    const nowMs = wallMs();
    const integrations = workspacesOf(caches, identity).flatMap(([workspace]) => agreedIntegrations(caches, workspace));
    // The same integration could have been granted to several workspaces of the caller, one after the other.
    const keyOf = ({ producer, name, recipient }: Received) => `${integrationIdOf(producer, name)} ${recipient}`;
    const { data, nextCursor } = paginate(['partner integrations'], integrations, keyOf, query);
    return { status: 200, body: { data: data.map(each => partnerIntegration(each, nowMs)), nextCursor } };
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
  async handle({ wallMs }, { integration: { producer, name, object, recipient } }) {
    return { status: 200, body: partnerIntegration({ producer, name, object, recipient: recipient.name }, wallMs()) };
  },
});

export const PARTNER_INTEGRATION_ROUTES = [listPartnerIntegrations, getPartnerIntegration];
