import { z } from 'zod';
import { publicId } from '../../../core/ids/ids.ts';
import type { ListName } from '../../../core/ids/list-cursor.ts';
import { byAge } from '../../../core/routing/compile-routes.ts';
import { snapshotOf } from '../../../core/routing/snapshot-of.ts';
import { inSlices } from '../../../time/slices.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Caches } from '../../caches/caches.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { findOwned, unknownObject } from '../../objects/owned-objects.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { assertActive } from '../integrations/active-integration.ts';
import { listedEntry, pageOfStreams, SCHEMA_FACTS } from '../streams/streams.ts';
import { coveredSteps, coveringInCaches } from './live-coverage.ts';

const ListedPartnerEntry = z
  .object({
    publicId: publicIdField('CatalogStream'),
    key: z.string().meta({ description: "The stream's key.", example: 'orders' }),
    name: z.string().meta({ description: "The stream's name." }),
    description: z.string().nullable().meta({ description: 'An optional description of the stream.' }),
    status: z
      .enum(['Published', 'Deprecated'])
      .meta({ description: "The stream's status. New subscriptions are not accepted for deprecated streams." }),
    eventTypes: z
      .array(z.string())
      .meta({ description: 'The event types of the stream. An empty list means that its events can have any type.' }),
    ...SCHEMA_FACTS,
    subscribed: z.boolean().meta({ description: 'Indicates whether this integration is subscribed to the stream.' }),
    subscriptionPublicId: publicIdField('Subscription')
      .nullable()
      .meta({ description: "This integration's subscription, if any." }),
    blocked: z
      .boolean()
      .meta({ description: 'Indicates whether the producer has blocked the stream for this integration.' }),
  })
  .meta({ id: 'ListedPartnerCatalogEntry' });

const PartnerCatalogEntry = ListedPartnerEntry.extend({
  payloadSchema: z.string().nullable().meta({ description: 'The payload schema provided by the producer, if any.' }),
}).meta({ id: 'PartnerCatalogEntry' });

/** Returns the subscriptions of an integration in its receiving workspace from the cache. */
export function subscriptionsOf(
  caches: Caches,
  { producer, name, recipient }: OwnedIntegration,
): Cached<'Subscription'>[] {
  return caches
    .by('Subscription', 'integration', `${producer}/${name}`)
    .filter(({ metadata }) => metadata.namespace === recipient.name && metadata.deletionTimestamp === undefined);
}

/** Returns the subscription that receives the events of each stream. If a stream has several, this is the oldest one. */
export function receivingByStream(caches: Caches, integration: OwnedIntegration): Map<string, Cached<'Subscription'>> {
  const byStream = new Map<string, Cached<'Subscription'>>();
  for (const subscription of subscriptionsOf(caches, integration)) {
    const { stream } = subscription.spec;
    const known = byStream.get(stream);
    if (known === undefined || byAge(snapshotOf(subscription), snapshotOf(known)) < 0)
      byStream.set(stream, subscription);
  }
  return byStream;
}

const listPartnerCatalog = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/catalog',
  access: 'recipient',
  scope: 'waas:read',
  operation: 'listPartnerCatalog',
  tag: 'Receiving',
  summary: 'List the streams you can subscribe to',
  description:
    "Returns the producer's published streams, and any deprecated streams that you're subscribed to. You can't subscribe to a blocked stream until the producer removes the block. To get the payload schema of a stream, retrieve its entry. A page contains up to `limit` entries or 1 MiB, whichever is reached first.",
  query: PageQuery,
  answers: { 200: { description: 'A list of streams, sorted by key.', schema: pageOf(ListedPartnerEntry) } },
  problems: ['malformed_cursor', 'integration_not_active'],
  async handle(facade, { integration, query }) {
    const view = await openCatalog(facade, integration);
    // A producer's entries are never shorter than the same entries of a partner.
    const list: ListName = ['partner catalog', integration.publicId];
    const { data, nextCursor } = await pageOfStreams(list, view.streams, query);
    const names = new Set(data.map(({ metadata }) => metadata.name));
    const covered = await inSlices(coveredSteps(facade.caches, integration, names));
    const entryOf = (stream: Cached<'CatalogStream'>) => view.entryOf(stream, covered.has(stream.metadata.name));
    return { status: 200, body: { data: data.map(entryOf), nextCursor } };
  },
});

const getPartnerCatalogEntry = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/catalog/{catalogEntryPublicId}',
  access: 'recipient',
  scope: 'waas:read',
  operation: 'getPartnerCatalogEntry',
  tag: 'Receiving',
  summary: 'Retrieve a stream with its payload schema, as its partner',
  answers: { 200: { description: 'The requested stream.', schema: PartnerCatalogEntry } },
  problems: ['unknown_resource', 'integration_not_active'],
  async handle(facade, { integration, params }) {
    const view = await openCatalog(facade, integration);
    const stream = await findOwned(facade.caches, 'CatalogStream', integration.producer, params.catalogEntryPublicId);
    if (!view.isListed(stream)) throw unknownObject('CatalogStream');
    const isBlocked = coveringInCaches(facade, integration, stream.metadata.name).length > 0;
    const body = { ...view.entryOf(stream, isBlocked), payloadSchema: stream.spec.payloadSchema ?? null };
    return { status: 200, body };
  },
});

/**
 * Returns a producer's catalog. The catalog only contains streams that are visible to the partner.
 *
 * @throws Refusal 409 `integration_not_active`
 */
async function openCatalog(facade: Facade, integration: OwnedIntegration) {
  const { caches } = facade;
  const { producer } = integration;
  await assertActive(facade, integration);
  const subscriptions = receivingByStream(caches, integration);
  const isListed = ({ metadata, spec }: Cached<'CatalogStream'>): boolean =>
    metadata.deletionTimestamp === undefined && (spec.public === true || subscriptions.has(metadata.name));
  return {
    isListed,
    streams: caches.list('CatalogStream', producer).filter(isListed),
    entryOf: (stream: Cached<'CatalogStream'>, blocked: boolean): z.output<typeof ListedPartnerEntry> => {
      // List the fields, so that a field added for the producer is not shown to partners.
      const entry = listedEntry(stream);
      const own = subscriptions.get(stream.metadata.name)?.metadata;
      return {
        publicId: entry.publicId,
        key: entry.key,
        name: entry.name,
        description: entry.description,
        status: entry.status,
        eventTypes: entry.eventTypes,
        payloadSchemaBytes: entry.payloadSchemaBytes,
        payloadSchemaSha256: entry.payloadSchemaSha256,
        subscribed: own !== undefined,
        subscriptionPublicId: own === undefined ? null : publicId('Subscription', own.namespace ?? '', own.name),
        blocked,
      };
    },
  };
}

export const PARTNER_CATALOG_ROUTES = [listPartnerCatalog, getPartnerCatalogEntry];
