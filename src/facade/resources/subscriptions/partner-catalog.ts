import { z } from 'zod';
import { publicId } from '../../../core/ids/ids.ts';
import { coverage } from '../../../core/routing/coverage.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Cached } from '../../objects/cached.ts';
import type { Caches } from '../../objects/caches.ts';
import type { Facade } from '../../objects/facade.ts';
import { findOwned, unknownObject } from '../../objects/owned-objects.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { assertActive } from '../integrations/active-integration.ts';
import { listedEntry } from '../streams/streams.ts';

const ListedPartnerEntry = z
  .object({
    publicId: publicIdField('CatalogStream'),
    key: z.string().meta({ description: 'Key of the stream.', example: 'orders' }),
    name: z.string().meta({ description: 'Name of the stream.' }),
    description: z.string().nullable().meta({ description: 'What the stream carries, or null.' }),
    status: z
      .enum(['Published', 'Deprecated'])
      .meta({ description: 'Deprecated: the stream takes no new subscriptions.' }),
    eventTypes: z.array(z.string()).meta({ description: 'Event types of the stream. Empty: any type.' }),
    payloadSchemaBytes: z.int().min(0).nullable().meta({
      description: 'Size of the payloadSchema in bytes of UTF-8; null if there is none.',
      example: 17,
    }),
    payloadSchemaSha256: z.string().nullable().meta({
      description: 'SHA-256 of the payloadSchema as UTF-8, in hex; null if there is none.',
    }),
    subscribed: z.boolean().meta({ description: 'Whether this integration subscribes to the stream.' }),
    subscriptionPublicId: publicIdField('Subscription').nullable().meta({ description: 'The subscription, or null.' }),
    blocked: z.boolean().meta({ description: 'Whether the producer blocks the stream for this integration.' }),
  })
  .meta({ id: 'ListedPartnerCatalogEntry' });

const PartnerCatalogEntry = ListedPartnerEntry.extend({
  payloadSchema: z.string().nullable().meta({ description: 'The schema as the producer wrote it, or null.' }),
}).meta({ id: 'PartnerCatalogEntry' });

/** Returns the cached subscriptions of one integration in its receiving workspace. */
export function subscriptionsOf(
  caches: Caches,
  { producer, name, recipient }: OwnedIntegration,
): Cached<'Subscription'>[] {
  return caches
    .by('Subscription', 'integration', `${producer}/${name}`)
    .filter(({ metadata }) => metadata.namespace === recipient.name && metadata.deletionTimestamp === undefined);
}

/** Returns a function that decides whether these objects block a stream for an integration. */
export function isCoveredBy(
  packages: readonly Cached<'Package'>[],
  blocks: readonly Cached<'Block'>[],
): (integration: string, stream: string) => boolean {
  const named = packages.map(({ metadata, spec }) => ({ name: metadata.name, spec }));
  const covering = coverage({ packages: named, blocks });
  return (integration, stream) => covering(integration, stream).length > 0;
}

const listPartnerCatalog = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/catalog',
  access: 'recipient',
  operation: 'listPartnerCatalog',
  tag: 'Receiving',
  summary: 'List the streams you can subscribe to',
  description:
    "The producer's published streams, and the deprecated streams that you subscribe to. Blocked streams are listed too, but take no subscription until the producer unblocks them. Entries leave out the payload schema; read a single entry to get it. A page ends at `limit` entries or at 1 MiB, whichever comes first.",
  query: PageQuery,
  answers: { 200: { description: 'A page of streams, by key.', schema: pageOf(ListedPartnerEntry) } },
  problems: ['malformed_cursor', 'integration_not_active'],
  async handle(facade, { integration, query }) {
    const view = await openCatalog(facade, integration);
    const { data, nextCursor } = paginate(view.streams, ({ metadata }) => metadata.name, query, view.entryOf);
    return { status: 200, body: { data: data.map(view.entryOf), nextCursor } };
  },
});

const getPartnerCatalogEntry = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/catalog/{catalogEntryPublicId}',
  access: 'recipient',
  operation: 'getPartnerCatalogEntry',
  tag: 'Receiving',
  summary: 'Read one stream with its payload schema, as its partner',
  answers: { 200: { description: 'The stream.', schema: PartnerCatalogEntry } },
  problems: ['unknown_resource', 'integration_not_active'],
  async handle(facade, { integration, params }) {
    const view = await openCatalog(facade, integration);
    const stream = await findOwned(facade.caches, 'CatalogStream', integration.producer, params.catalogEntryPublicId);
    if (!view.isListed(stream)) throw unknownObject('CatalogStream');
    const body = { ...view.entryOf(stream), payloadSchema: stream.spec.payloadSchema ?? null };
    return { status: 200, body };
  },
});

/** Returns a producer's catalog as one partner sees it. @throws Refusal 409 `integration_not_active` */
async function openCatalog(facade: Facade, integration: OwnedIntegration) {
  const { caches } = facade;
  const { producer, name } = integration;
  await assertActive(facade, integration);
  const subscriptions = new Map(subscriptionsOf(caches, integration).map(each => [each.spec.stream, each]));
  const isCovered = isCoveredBy(
    caches.list('Package', producer),
    caches.by('Block', 'integration', `${producer}/${name}`),
  );
  const isListed = ({ metadata, spec }: Cached<'CatalogStream'>): boolean =>
    metadata.deletionTimestamp === undefined && (spec.public === true || subscriptions.has(metadata.name));
  return {
    isListed,
    streams: caches.list('CatalogStream', producer).filter(isListed),
    entryOf: (stream: Cached<'CatalogStream'>): z.output<typeof ListedPartnerEntry> => {
      const { ingressPath: _path, queue: _queue, ...entry } = listedEntry(stream);
      const own = subscriptions.get(stream.metadata.name)?.metadata;
      return {
        ...entry,
        subscribed: own !== undefined,
        subscriptionPublicId: own === undefined ? null : publicId('Subscription', own.namespace ?? '', own.name),
        blocked: isCovered(name, stream.metadata.name),
      };
    },
  };
}

export const PARTNER_CATALOG_ROUTES = [listPartnerCatalog, getPartnerCatalogEntry];
