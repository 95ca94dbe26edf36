import { z } from 'zod';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { Refusal } from '../../../http/refusal.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Cached } from '../../objects/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import { findOwned } from '../../objects/owned-objects.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { assertActive } from '../integrations/active-integration.ts';
import { assertStream } from '../streams/producer-stream.ts';
import { subscriptionsOf } from './partner-catalog.ts';
import { SUBSCRIPTION_CONCERN, subscribe } from './subscribe.ts';
import { requestedFields, requestOfChange } from './subscription-request.ts';
import { EndpointChange, EndpointRequest, SubscriptionEntry, subscriptionEntry } from './subscription-views.ts';

const Subscribe = z
  .strictObject({
    catalogEntryPublicId: publicIdField('CatalogStream'),
    endpoint: EndpointRequest.optional().meta({
      description:
        'The endpoint that receives the events. If this field is not set, you can pull and acknowledge the events.',
    }),
    ordering: z.enum(['ByGroupKey', 'None']).optional().meta({
      description:
        'The order of deliveries. With ByGroupKey, an event waits until the previous event of the same group key has ended. With None, events do not wait. Defaults to ByGroupKey. You cannot change this field later.',
    }),
  })
  .meta({ id: 'Subscribe' });

const SubscriptionChange = z
  .strictObject({
    endpoint: EndpointChange.nullable().optional().meta({
      description:
        'The complete endpoint. To remove the endpoint and pull the events, send null. This field is required if the subscription has an endpoint.',
    }),
    suspended: z.boolean().optional().meta({
      description:
        'If true, routing is paused, and events are kept until their retention period ends. Defaults to false.',
    }),
  })
  .meta({ id: 'SubscriptionChange' });

const unknownSubscription = () => new Refusal('unknown_resource', 'The integration does not have this subscription.');

/** Finds a subscription by public id. Must belong to this integration. @throws Refusal 404 */
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

/** Returns a subscription as shown to its owner. */
export function entryOf({ wallMs }: Facade, { object }: OwnedIntegration, subscription: Cached<'Subscription'>) {
  return subscriptionEntry(subscription, integrationStatus(object, wallMs()) !== 'Active');
}

const subscribeRoute = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions',
  access: 'recipient',
  operation: 'subscribe',
  tag: 'Receiving',
  summary: 'Subscribe to a stream',
  description:
    'Creates a subscription. An integration can have one subscription per stream. If you repeat the call, it returns the existing subscription with status 200. If the stream is blocked, the call is rejected and does not change any data. If the operator does not allow the endpoint, the subscription is stored with the reason EndpointRefused.',
  body: Subscribe,
  largeBody: true,
  answers: {
    201: {
      description: 'The subscription is created. You receive events that are accepted from this point on.',
      schema: SubscriptionEntry,
      headers: { Location: 'The path of the subscription.' },
    },
    200: { description: 'The same subscription already exists.', schema: SubscriptionEntry },
  },
  problems: [
    'unknown_resource',
    'stream_blocked',
    'stream_deprecated',
    'integration_not_active',
    'subscription_exists',
  ],
  async handle(facade, { integration, body }) {
    const { catalogEntryPublicId, ...requested } = body;
    const stream = await findOwned(facade.caches, 'CatalogStream', integration.producer, catalogEntryPublicId);
    const { made, subscription } = await subscribe(facade, integration, stream.metadata.name, requested);
    const inForce = await facade.writer.waitFor('Subscription', subscription);
    const entry = entryOf(facade, integration, inForce);
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
  operation: 'listSubscriptions',
  tag: 'Receiving',
  summary: 'List the subscriptions of an integration',
  query: PageQuery,
  answers: { 200: { description: 'A page of subscriptions, sorted by stream.', schema: pageOf(SubscriptionEntry) } },
  problems: ['malformed_cursor'],
  async handle(facade, { integration, query }) {
    const all = subscriptionsOf(facade.caches, integration);
    const page = paginate(all, ({ metadata, spec }) => `${spec.stream} ${metadata.name}`, query);
    const data = page.data.map(each => entryOf(facade, integration, each));
    return { status: 200, body: { data, nextCursor: page.nextCursor } };
  },
});

const getSubscription = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}',
  access: 'recipient',
  operation: 'getSubscription',
  tag: 'Receiving',
  summary: 'Read one subscription',
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
  operation: 'changeSubscription',
  tag: 'Receiving',
  summary: 'Change the endpoint of a subscription, or pause it',
  description:
    'This call is declarative. Read the subscription, change the values of `endpoint` and `suspended`, and send them back. If a header does not have a value, the stored value is kept. To remove the endpoint, you must send null. If you do not send an existing endpoint, the call is rejected with 422. If `suspended` is not set, it is false. The signing secret does not change.',
  body: SubscriptionChange,
  largeBody: true,
  answers: { 200: { description: 'The change is in force.', schema: SubscriptionEntry } },
  problems: ['unknown_resource', 'integration_not_active'],
  async handle(facade, { integration, params, body }) {
    const { writer } = facade;
    await assertActive(facade, integration);
    const applied = await writer.edit(async () => {
      const before = await readSubscription(facade, integration, params.subscription);
      await assertStream(facade, integration.producer, before.spec.stream);
      const requested = requestOfChange(body, before.spec);
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
    return { status: 200, body: entryOf(facade, integration, inForce), about };
  },
});

const unsubscribe = defineRoute({
  method: 'DELETE',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}',
  access: 'recipient',
  operation: 'unsubscribe',
  tag: 'Receiving',
  summary: 'Delete a subscription',
  description:
    'Deletes a subscription. Deliveries stop, and the inbox is removed. If the subscription does not exist, the response is the same. If you subscribe again, the signing secret starts with version 1. If this secret has been exposed, rotate it before events flow.',
  closes: true,
  answers: { 204: { description: 'The subscription does not exist.' } },
  async handle({ caches, writer }, { integration, params }) {
    const { producer, name, recipient } = integration;
    const found = await caches.find('Subscription', params.subscription, recipient.name);
    if (found?.spec.producer !== producer || found.spec.integration !== name) return { status: 204 };
    const object = { namespace: recipient.name, name: found.metadata.name };
    const live = await caches.live('Subscription', object);
    if (live !== undefined) await writer.remove('Subscription', live);
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
