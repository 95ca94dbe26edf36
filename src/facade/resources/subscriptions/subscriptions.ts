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
import { EndpointChange, EndpointWish, SubscriptionEntry, subscriptionEntry } from './subscription-views.ts';
import { wishedFields, wishOfChange } from './subscription-wishes.ts';

const Subscribe = z
  .strictObject({
    catalogEntryPublicId: publicIdField('CatalogStream'),
    endpoint: EndpointWish.optional().meta({
      description: 'Where events are delivered to. Absent: nothing is sent, events are pulled and acknowledged.',
    }),
    ordering: z.enum(['ByGroupKey', 'None']).optional().meta({
      description:
        'ByGroupKey (default): a later event of a group key waits until the earlier one has ended. None: nothing waits. It never changes.',
    }),
  })
  .meta({ id: 'Subscribe' });

const SubscriptionChange = z
  .strictObject({
    endpoint: EndpointChange.nullable().optional().meta({
      description:
        'The endpoint as it is to be, as a whole. null: it is taken away, events are pulled. It may be absent only where the subscription has no endpoint.',
    }),
    suspended: z.boolean().optional().meta({
      description: 'True: routing pauses; nothing is lost within the retention. Absent: false.',
    }),
  })
  .meta({ id: 'SubscriptionChange' });

const unknownSubscription = () => new Refusal('unknown_resource', 'This integration has no such subscription.');

/** The subscription of a public id that receives for this integration. @throws Refusal 404 */
export async function findSubscription(
  { world }: Facade,
  { producer, name, recipient }: OwnedIntegration,
  id: string,
): Promise<Cached<'Subscription'>> {
  const found = await world.find('Subscription', id, recipient.name);
  if (found?.spec.producer !== producer || found.spec.integration !== name) throw unknownSubscription();
  return found;
}

/** The same, as the API server has it now, to be written to. @throws Refusal 404 */
export async function readSubscription(facade: Facade, integration: OwnedIntegration, id: string) {
  const { metadata } = await findSubscription(facade, integration, id);
  const { namespace, name } = metadata;
  const live = await facade.world.live('Subscription', { namespace, name });
  if (live === undefined || live.metadata.deletionTimestamp !== undefined) throw unknownSubscription();
  return live;
}

/** A subscription as its owner sees it. */
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
    'One subscription of an integration to a stream. The same call again answers the one that is there (200). While the stream is blocked the call is refused, and changes nothing. An endpoint that the operator does not allow is stored, and its status says so.',
  body: Subscribe,
  largeBody: true,
  answers: {
    201: {
      description: 'Subscribed; what is accepted from now on comes.',
      schema: SubscriptionEntry,
      headers: { Location: 'Path of the subscription.' },
    },
    200: { description: 'It was there before, just so.', schema: SubscriptionEntry },
  },
  problems: [
    'unknown_resource',
    'stream_blocked',
    'stream_deprecated',
    'integration_not_active',
    'subscription_exists',
  ],
  async handle(facade, { integration, body }) {
    const { catalogEntryPublicId, ...wish } = body;
    const stream = await findOwned(facade.world, 'CatalogStream', integration.producer, catalogEntryPublicId);
    const { made, subscription } = await subscribe(facade, integration, stream.metadata.name, wish);
    const inForce = await facade.objects.waitFor('Subscription', subscription);
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
  answers: { 200: { description: 'A page of subscriptions, by stream.', schema: pageOf(SubscriptionEntry) } },
  problems: ['malformed_cursor'],
  async handle(facade, { integration, query }) {
    const all = subscriptionsOf(facade.world, integration);
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
  summary: 'Change where a subscription delivers to, or pause it',
  description:
    'Declarative, and takes back what reading the subscription answers: send endpoint and suspended, changed as you want them. A header without a value keeps the value that is stored. An endpoint is taken away by null only; where the subscription has one and the call leaves it out, the call is refused (422). An absent suspended is false. The signing secret stays.',
  body: SubscriptionChange,
  largeBody: true,
  answers: { 200: { description: 'It is as described, and in force.', schema: SubscriptionEntry } },
  problems: ['unknown_resource', 'integration_not_active'],
  async handle(facade, { integration, params, body }) {
    const { objects } = facade;
    await assertActive(facade, integration);
    const applied = await objects.edit(async () => {
      const before = await readSubscription(facade, integration, params.subscription);
      await assertStream(facade, integration.producer, before.spec.stream);
      const wish = wishOfChange(body, before.spec);
      const { producer, integration: of, stream, ordering } = before.spec;
      return objects.apply('Subscription', before.metadata, {
        manager: FIELD_MANAGER.facade,
        before,
        concern: SUBSCRIPTION_CONCERN,
        exactly: true,
        spec: { producer, integration: of, stream, ordering, ...wishedFields(wish, before) },
      });
    });
    const inForce = await objects.waitFor('Subscription', applied);
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
  summary: 'End a subscription',
  description:
    'Nothing is sent any more, and its inbox cannot be reached; what is unknown is answered the same way. Subscribing again begins anew, with the first version of the signing secret: if that has leaked, rotate before events flow.',
  closes: true,
  answers: { 204: { description: 'There is no such subscription.' } },
  async handle({ world, objects }, { integration, params }) {
    const { producer, name, recipient } = integration;
    const found = await world.find('Subscription', params.subscription, recipient.name);
    if (found?.spec.producer !== producer || found.spec.integration !== name) return { status: 204 };
    const object = { namespace: recipient.name, name: found.metadata.name };
    const live = await world.live('Subscription', object);
    if (live !== undefined) await objects.remove('Subscription', live);
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
