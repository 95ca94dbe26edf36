import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { Refusal, refuseBecause } from '../../../http/refusal.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { assertNotManagedElsewhere } from '../../objects/field-conflicts.ts';
import { findOwned } from '../../objects/owned-objects.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { assertActive } from '../integrations/active-integration.ts';
import { assertStream } from '../streams/producer-stream.ts';
import { subscriptionsOf } from './partner-catalog.ts';
import { SUBSCRIPTION_CONCERN, subscribe } from './subscribe.ts';
import { requestedFields, requestOfChange, sealsOf } from './subscription-request.ts';
import { EndpointChange, EndpointRequest, SubscriptionEntry, subscriptionEntry } from './subscription-views.ts';

const Subscribe = z
  .strictObject({
    catalogEntryPublicId: publicIdField('CatalogStream'),
    endpoint: EndpointRequest.optional().meta({
      description: 'The receiving endpoint. To pull and acknowledge events instead, omit it.',
    }),
    ordering: z.enum(['ByGroupKey', 'None']).optional().meta({
      description:
        "The order of deliveries. With ByGroupKey, each event waits until the previous event with the same group key has ended. With None, events do not wait for each other. Defaults to ByGroupKey. You can't change this later.",
    }),
  })
  .meta({ id: 'Subscribe' });

const SubscriptionChange = z
  .strictObject({
    endpoint: EndpointChange.nullable().optional().meta({
      description:
        'The complete endpoint, or null to remove the endpoint and pull events instead. This field is required if the subscription already has an endpoint.',
    }),
    suspended: z.boolean().optional().meta({
      description:
        'Set to true to pause routing. In the meantime, events are only kept until their retention period ends. Defaults to false.',
    }),
  })
  .meta({ id: 'SubscriptionChange' });

const unknownSubscription = () => refuseBecause('unknown_resource', 'The integration does not have this subscription.');

/** Looks up the subscription with a public id. Must belong to this integration. @throws Refusal 404 */
export async function findSubscription(
  { caches }: Facade,
  { producer, name, recipient }: OwnedIntegration,
  id: string,
): Promise<Cached<'Subscription'>> {
  const found = await caches.find('Subscription', id, recipient.name);
  if (found?.spec.producer !== producer || found.spec.integration !== name) throw unknownSubscription();
  return found;
}

/** Reads the subscription from the API server, since we're about to change it. @throws Refusal 404 */
export async function readSubscription(facade: Facade, integration: OwnedIntegration, id: string) {
  const { metadata } = await findSubscription(facade, integration, id);
  const { namespace, name } = metadata;
  const live = await facade.caches.live('Subscription', { namespace, name });
  if (live === undefined || live.metadata.deletionTimestamp !== undefined) throw unknownSubscription();
  return live;
}

/** Returns a subscription as it is shown to its owner. */
export function entryOf({ wallMs }: Facade, { object }: OwnedIntegration, subscription: Cached<'Subscription'>) {
  return subscriptionEntry(subscription, integrationStatus(object, wallMs()) !== 'Active');
}

/**
 * Returns a subscription after waiting for the controller. The status belongs to the current version, so the call can't
 * return the status of a version with a different endpoint.
 *
 * @throws Refusal 409 `superseded` if a later call has changed what this call has applied
 */
function entryInForce(
  facade: Facade,
  integration: OwnedIntegration,
  applied: Cached<'Subscription'>,
  inForce: Cached<'Subscription'>,
) {
  const entry = entryOf(facade, integration, inForce);
  const { endpoint, suspended } = entryOf(facade, integration, applied);
  if (suspended !== entry.suspended || !isDeepStrictEqual(endpoint, entry.endpoint)) throw new Refusal('superseded');
  return entry;
}

const subscribeRoute = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'subscribe',
  tag: 'Receiving',
  summary: 'Subscribe to a stream',
  description:
    "Subscribes an integration to a stream. An integration can only have one subscription for each stream, so repeating the request returns the existing subscription with status 200. If the stream is blocked, the request is rejected without making any changes. If the endpoint isn't allowed by the operator, the subscription is still stored, but its reason is EndpointRefused.",
  body: Subscribe,
  largeBody: true,
  answers: {
    201: {
      description: 'The subscription has been created. You receive all events that are accepted from now on.',
      schema: SubscriptionEntry,
      headers: { Location: 'Path of the subscription.' },
    },
    200: { description: 'An identical subscription already exists.', schema: SubscriptionEntry },
  },
  problems: [
    'unknown_resource',
    'limit_reached',
    'stream_blocked',
    'stream_deprecated',
    'integration_not_active',
    'subscription_exists',
    'superseded',
  ],
  async handle(facade, { integration, body }) {
    const { catalogEntryPublicId, ...requested } = body;
    const stream = await findOwned(facade.caches, 'CatalogStream', integration.producer, catalogEntryPublicId);
    const { made, subscription } = await subscribe(facade, integration, stream.metadata.name, requested);
    const inForce = await facade.writer.waitFor('Subscription', subscription);
    const entry = entryInForce(facade, integration, subscription, inForce);
    const { namespace, name } = subscription.metadata;
    return {
      status: made ? 201 : 200,
      body: entry,
      headers: { location: `/waas/integrations/${integration.publicId}/subscriptions/${entry.publicId}` },
      ...(made ? { about: { kind: 'Subscription', namespace, name } } : {}),
    };
  },
});

const listSubscriptions = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/subscriptions',
  access: 'recipient',
  scope: 'waas:read',
  operation: 'listSubscriptions',
  tag: 'Receiving',
  summary: 'List all subscriptions for an integration',
  query: PageQuery,
  answers: { 200: { description: 'A list of subscriptions, sorted by stream.', schema: pageOf(SubscriptionEntry) } },
  problems: ['malformed_cursor'],
  async handle(facade, { integration, query }) {
    const all = subscriptionsOf(facade.caches, integration);
    const page = paginate(
      ['subscriptions', integration.publicId],
      all,
      ({ metadata, spec }) => `${spec.stream} ${metadata.name}`,
      query,
    );
    const data = page.data.map(each => entryOf(facade, integration, each));
    return { status: 200, body: { data, nextCursor: page.nextCursor } };
  },
});

const getSubscription = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}',
  access: 'recipient',
  scope: 'waas:read',
  operation: 'getSubscription',
  tag: 'Receiving',
  summary: 'Retrieve a subscription',
  answers: { 200: { description: 'The subscription.', schema: SubscriptionEntry } },
  problems: ['unknown_resource'],
  async handle(facade, { integration, params }) {
    const found = await findSubscription(facade, integration, params.subscription);
    return { status: 200, body: entryOf(facade, integration, found) };
  },
});

const changeSubscription = defineRoute({
  method: 'PUT',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'changeSubscription',
  tag: 'Receiving',
  summary: 'Change the endpoint of a subscription, or pause it',
  description:
    'Replaces `endpoint` and `suspended`. Retrieve the subscription first, and send both back with your changes. Header values that you omit are kept unless the origin (scheme, host, or port) of the URL changes. To remove the endpoint, send null. Omitting an existing endpoint is rejected with 422. You can then only pull an event that is waiting for a retry when the retry is due or after you have recovered it. `suspended` defaults to false. The signing secret does not change.',
  body: SubscriptionChange,
  largeBody: true,
  answers: { 200: { description: 'The change is now in force.', schema: SubscriptionEntry } },
  problems: ['unknown_resource', 'integration_not_active', 'superseded'],
  async handle(facade, { integration, params, body }) {
    const { writer } = facade;
    await assertActive(facade, integration);
    const applied = await writer.edit(async () => {
      const before = await readSubscription(facade, integration, params.subscription);
      await assertStream(facade, integration.producer, before.spec.stream);
      const seals = sealsOf(facade.headerSeals, before.metadata, before, body.endpoint?.url ?? '');
      const requested = requestOfChange(body, before.spec, seals);
      const { producer, integration: of, stream, ordering } = before.spec;
      return writer.apply('Subscription', before.metadata, {
        manager: FIELD_MANAGER.facade,
        before,
        concern: SUBSCRIPTION_CONCERN,
        exactly: true,
        spec: { producer, integration: of, stream, ordering, ...requestedFields(requested, before) },
      });
    });
    const inForce = await writer.waitFor('Subscription', applied);
    const { namespace, name } = applied.metadata;
    const about = { kind: 'Subscription', namespace, name };
    return { status: 200, body: entryInForce(facade, integration, applied, inForce), about };
  },
});

const unsubscribe = defineRoute({
  method: 'DELETE',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'unsubscribe',
  tag: 'Receiving',
  summary: 'Delete a subscription',
  description:
    "Deletes a subscription, which stops all deliveries. You can no longer read its inbox. If you subscribe again, you get an empty inbox and a new signing secret. The producer can still look up to which integrations an event was routed. The response is the same if the subscription doesn't exist. If another tool also manages the subscription, such as Git or kubectl, delete it with this tool.",
  closes: true,
  answers: { 204: { description: 'The subscription has been deleted or did not exist.' } },
  problems: ['managed_elsewhere'],
  async handle({ caches, writer }, { integration, params }) {
    const { producer, name, recipient } = integration;
    const found = await caches.find('Subscription', params.subscription, recipient.name);
    if (found?.spec.producer !== producer || found.spec.integration !== name) return { status: 204 };
    const object = { namespace: recipient.name, name: found.metadata.name };
    const live = await caches.live('Subscription', object);
    if (live !== undefined) {
      if (live.metadata.deletionTimestamp === undefined) {
        assertNotManagedElsewhere('Subscription', live, FIELD_MANAGER.facade, 'stream');
      }
      await writer.remove('Subscription', live);
    }
    return { status: 204, about: { kind: 'Subscription', ...object } };
  },
});

export const SUBSCRIPTION_ROUTES = [
  subscribeRoute,
  listSubscriptions,
  getSubscription,
  changeSubscription,
  unsubscribe,
];
