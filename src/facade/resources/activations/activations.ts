import { z } from 'zod';
import { activationId } from '../../../core/ids/ids.ts';
import { activationObjectNameOf } from '../../../core/ids/object-names.ts';
import { refuseBecause } from '../../../http/refusal.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { type Answer, defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { findOwned } from '../../objects/owned-objects.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { activate } from './activate.ts';
import { PairBody, PairQuery, resolvePair } from './activation-requests.ts';
import { ActivatedKey, ActivationEntry, activationEntry, pairOf } from './activation-views.ts';
import { deactivate } from './deactivate.ts';

const activateRoute = defineRoute({
  method: 'POST',
  path: '/waas/activations',
  access: 'producer',
  scope: 'waas:write',
  operation: 'activate',
  tag: 'Activations',
  summary: 'Open a group key for an integration',
  description:
    'Opens a group key for all streams of the producer. Only events accepted after the response are routed. If the partner accepts the integration later, only events accepted from then on are routed. You can safely repeat this request. An activation that you close and open again keeps its id.',
  body: PairBody,
  answers: { 200: { description: 'The gate is now open.', schema: ActivatedKey } },
  problems: ['unknown_resource', 'limit_reached', 'integration_closed', 'revoked_elsewhere', 'superseded'],
  async handle(facade, { tenant, body: { groupKey, integrationPublicId } }) {
    const integration = await findOwned(facade.caches, 'Integration', tenant.name, integrationPublicId);
    const { metadata, spec } = await activate(facade, tenant, integration, groupKey);
    const publicId = activationId(tenant.name, spec.integration, groupKey);
    const about = { kind: 'Activation', namespace: tenant.name, name: metadata.name };
    return { status: 200, body: { publicId, groupKey, status: 'Active' }, about };
  },
});

/** Closes the group key of the given pair. The response does not indicate whether it was open before. */
async function close(facade: Facade, tenant: OwnedTenant, pair: z.output<typeof PairBody>): Promise<Answer> {
  const written = await deactivate(facade, tenant, pair.integrationPublicId, pair.groupKey);
  if (written === undefined) return { status: 204 };
  return { status: 204, about: { kind: 'Activation', namespace: tenant.name, name: written.metadata.name } };
}

const deactivateRoute = defineRoute({
  method: 'DELETE',
  path: '/waas/activations',
  access: 'producer',
  scope: 'waas:write',
  operation: 'deactivate',
  tag: 'Activations',
  summary: 'Close a group key for an integration',
  description:
    "After the response, Sluice no longer routes events with this group key and starts no new attempts for them. The response is the same if the activation doesn't exist. The fields can be in the body or in the query. If your group keys identify customers, use the body, or POST /waas/activations/revoke, because proxies may log queries.",
  query: PairQuery,
  body: PairBody,
  bodyOptional: true,
  closes: true,
  answers: { 204: { description: 'The gate is now closed.' } },
  problems: ['ambiguous_request'],
  handle: (facade, { tenant, body, query }) => close(facade, tenant, resolvePair(body, query)),
});

const revokeRoute = defineRoute({
  method: 'POST',
  path: '/waas/activations/revoke',
  access: 'producer',
  scope: 'waas:write',
  operation: 'revokeActivation',
  tag: 'Activations',
  summary: 'Close a group key without query parameters',
  description:
    "Does the same as DELETE /waas/activations, with the fields in the body. Use it to keep group keys out of access logs, or if your client or a proxy drops the body of a DELETE request. After the response, Sluice no longer routes events with this group key and starts no new attempts for them. The response is the same if the activation doesn't exist.",
  body: PairBody,
  closes: true,
  answers: { 204: { description: 'The gate is now closed.' } },
  handle: (facade, { tenant, body }) => close(facade, tenant, body),
});

const ActivationsQuery = PageQuery.extend({
  integration: publicIdField('Integration')
    .optional()
    .meta({ description: 'Only return activations for this integration.' }),
  groupKey: z
    .string()
    .optional()
    .meta({ description: 'Only return activations for this group key.', example: 'store-17' }),
  status: z.enum(['Active', 'Revoked', 'all']).optional().meta({
    description:
      'Only return activations with the given status. Defaults to Active. Revoked activations remain available for 30 days.',
    example: 'Active',
  }),
});

/** Returns Activations for a list. @throws Refusal 404 if the integration does not exist */
async function readListed({ caches }: Facade, namespace: string, integration: string | undefined) {
  if (integration === undefined) return caches.list('Activation', namespace);
  await findOwned(caches, 'Integration', namespace, integration);
  return caches.by('Activation', 'integrationId', integration);
}

/**
 * Returns a function that checks whether the pair of an object has this status. There may be 100,000 objects, so they
 * are not grouped by pairs.
 */
function wantedBy(objects: readonly Cached<'Activation'>[], status: 'Active' | 'Revoked') {
  const isRevoked = ({ spec }: Cached<'Activation'>) => spec.revoked === true;
  if (status === 'Revoked') return isRevoked;
  const revoked = new Set(objects.filter(isRevoked).map(pairOf));
  return (_object: Cached<'Activation'>, pair: string) => !revoked.has(pair);
}

/** Returns all objects of a pair. */
function pairWith({ caches }: Facade, object: Cached<'Activation'>): [Cached<'Activation'>, ...Cached<'Activation'>[]] {
  const { metadata, spec } = object;
  const id = activationId(metadata.namespace ?? '', spec.integration, spec.groupKey);
  const [first = object, ...rest] = caches.by('Activation', 'publicId', id);
  return [first, ...rest];
}

const listActivations = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/activations',
  access: 'producer',
  scope: 'waas:read',
  operation: 'listActivations',
  tag: 'Activations',
  summary: 'List all activations',
  query: ActivationsQuery,
  cost: 5,
  answers: {
    200: {
      description: 'A list of activations, sorted by integration and group key.',
      schema: pageOf(ActivationEntry),
    },
  },
  problems: ['unknown_resource', 'malformed_cursor'],
  async handle(facade, { tenant, query }) {
    const { integration, groupKey, status = 'Active' } = query;
    const objects = await readListed(facade, tenant.name, integration);
    const ofKey = groupKey === undefined ? objects : objects.filter(({ spec }) => spec.groupKey === groupKey);
    const { data, nextCursor } = paginate(['activations', tenant.name, integration, groupKey], ofKey, pairOf, query, {
      isWanted: status === 'all' ? () => true : wantedBy(ofKey, status),
    });
    return { status: 200, body: { data: data.map(each => activationEntry(pairWith(facade, each))), nextCursor } };
  },
});

const getActivation = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/activations/{activation}',
  access: 'producer',
  scope: 'waas:read',
  operation: 'getActivation',
  tag: 'Activations',
  summary: 'Retrieve an activation',
  answers: { 200: { description: 'The requested activation.', schema: ActivationEntry } },
  problems: ['unknown_resource'],
  async handle({ caches }, { tenant, params }) {
    const known = caches
      .by('Activation', 'publicId', params.activation)
      .filter(({ metadata }) => metadata.namespace === tenant.name);
    // An object that was just created by another replica needs to be looked up by name. Listing all objects would take
    // too long.
    const own = { namespace: tenant.name, name: activationObjectNameOf(params.activation) };
    const made = known.length > 0 ? undefined : await caches.live('Activation', own);
    const [first = made, ...rest] = known;
    if (
      first === undefined ||
      activationId(tenant.name, first.spec.integration, first.spec.groupKey) !== params.activation
    ) {
      throw refuseBecause('unknown_resource', 'The workspace does not have this activation.');
    }
    return { status: 200, body: activationEntry([first, ...rest]) };
  },
});

export const ACTIVATION_ROUTES = [activateRoute, deactivateRoute, revokeRoute, listActivations, getActivation];
