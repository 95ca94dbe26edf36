import { z } from 'zod';
import { tenantId } from '../../../core/ids/ids.ts';
import { isReceiverOf, RECEIVING_PREFIX } from '../../../core/ids/invitation-names.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { mapSteps } from '../../../core/routing/steps.ts';
import { inSlices } from '../../../time/slices.ts';
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

const accepted = new WeakMap<Cached<'Integration'>, { readonly account: string; readonly isAccepted: boolean }>();

/**
 * Returns true if the receiving workspace was created by accepting the integration's invitation. This is only derived
 * once, because any producer can grant thousands of integrations to a workspace.
 */
function isAccepted(integration: Cached<'Integration'>, { metadata, spec: { account } }: Cached<'Workspace'>): boolean {
  let known = accepted.get(integration);
  if (known?.account !== account) {
    const { namespace: producer = '', name } = integration.metadata;
    known = { account, isAccepted: isReceiverOf(metadata.name, producer, name, account) };
    accepted.set(integration, known);
  }
  return known.isAccepted;
}

/** The number of integrations for which `isAccepted` takes a few milliseconds. */
const DERIVED_AT_ONCE = 1_000;

/** Derives in slices which integrations of these workspaces were accepted. Returns false if there was nothing to do. */
async function prepareAccepted(
  { by }: Pick<Caches, 'by'>,
  workspaces: readonly Cached<'Workspace'>[],
): Promise<boolean> {
  const missing = workspaces
    .filter(({ metadata }) => metadata.name.startsWith(RECEIVING_PREFIX))
    .flatMap(workspace =>
      by('Integration', 'workspace', workspace.metadata.name)
        .filter(integration => accepted.get(integration)?.account !== workspace.spec.account)
        .map(integration => [integration, workspace] as const),
    );
  if (missing.length <= DERIVED_AT_ONCE) return false;
  await inSlices(mapSteps(missing, each => isAccepted(...each)));
  return true;
}

/**
 * Returns the integrations of a receiving workspace that its owner has agreed to, by accepting an invitation or by
 * subscribing. Anyone can create an Integration with the name of the workspace. An integration that the producer has
 * deleted is included for as long as a subscription that it has admitted exists.
 */
function agreedIntegrations(caches: Pick<Caches, 'by' | 'get' | 'list'>, workspace: Cached<'Workspace'>): Received[] {
  const recipient = workspace.metadata.name;
  const subscriptions = caches.list('Subscription', recipient);
  const used = new Set(subscriptions.map(({ spec }) => `${spec.producer}/${spec.integration}`));
  const granted = caches.by('Integration', 'workspace', recipient).flatMap((object): Received[] => {
    const { namespace: producer = '', name, deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined) return [];
    const isAgreed = used.has(`${producer}/${name}`) || isAccepted(object, workspace);
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
    let workspaces = workspacesOf(caches, identity).map(([workspace]) => workspace);
    // The caller may lose access to a workspace in the meantime.
    if (await prepareAccepted(caches, workspaces)) workspaces = workspacesOf(caches, identity).map(([each]) => each);
    const integrations = workspaces.flatMap(workspace => agreedIntegrations(caches, workspace));
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
