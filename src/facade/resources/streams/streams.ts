import { createHash } from 'node:crypto';
import { z } from 'zod';
import { CatalogStreamSpec } from '../../../api/kinds/catalog-stream.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { slugOf } from '../../../core/ids/slug.ts';
import { refuseBecause } from '../../../http/refusal.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Cached } from '../../objects/cached.ts';
import { findOwned } from '../../objects/owned-objects.ts';

const spec = CatalogStreamSpec.shape;

const StreamApply = z
  .strictObject({
    producerTenantPublicId: publicIdField('Workspace'),
    name: spec.name.unwrap().meta({
      description:
        'The name of the stream, with 1 to 128 characters. The slug of the name becomes the key and the name of the queue. A slug contains lowercase Latin letters, digits and hyphens. If the name does not contain any of these characters, the key consists of s- and a hash.',
      example: 'Orders',
    }),
    description: spec.description.meta({ example: 'What was ordered, paid and sent.' }),
    eventTypes: spec.eventTypes.meta({ example: ['order.made', 'order.paid'] }),
    payloadSchema: spec.payloadSchema.meta({ example: '{"type":"object"}' }),
    isPublic: z
      .boolean()
      .optional()
      .meta({ description: 'If true, the stream is Published. If false or not set, it is Deprecated.', example: true }),
  })
  .meta({
    id: 'StreamApply',
    description: 'The desired state of the stream. Optional fields that are not set are removed.',
  });

const StreamState = z.enum(['Published', 'Deprecated']).meta({
  description:
    'The status of the stream. Published streams are in the catalog and accept subscriptions. Deprecated streams only keep their existing subscriptions.',
});

const AppliedStream = z
  .object({
    publicId: publicIdField('CatalogStream'),
    key: z
      .string()
      .meta({ description: 'The key of the stream, which is also the name of its queue.', example: 'orders' }),
    status: StreamState,
  })
  .meta({ id: 'AppliedStream' });

/** Catalog entry in a list. We leave out the schema because the schemas on one page could add up to 32 MiB. */
const ListedCatalogEntry = AppliedStream.extend({
  name: z.string().meta({ description: 'The name of the stream.' }),
  description: z.string().nullable().meta({ description: 'A description of the stream. The value can be null.' }),
  eventTypes: z
    .array(z.string())
    .meta({ description: 'The event types that the stream accepts. If the list is empty, all types are accepted.' }),
  payloadSchemaBytes: z.int().min(0).nullable().meta({
    description: 'The size of the payloadSchema in bytes of UTF-8. The value is null if there is no schema.',
    example: 17,
  }),
  payloadSchemaSha256: z.string().nullable().meta({
    description:
      'The SHA-256 hash of the payloadSchema in UTF-8, in hexadecimal. The value is null if there is no schema.',
  }),
  queue: z
    .object({
      name: z
        .string()
        .meta({ description: 'The name of the queue, which is the key of the stream.', example: 'orders' }),
      visibility: z.literal('Public').meta({
        description: 'The visibility of the stream. With the value Public, all integrations can see the stream.',
      }),
    })
    .meta({ description: 'The queue of the stream.' }),
  ingressPath: z.string().meta({ description: 'The ingress path for events of the stream.' }),
}).meta({ id: 'ListedCatalogEntry' });

const CatalogEntry = ListedCatalogEntry.extend({
  payloadSchema: z
    .string()
    .nullable()
    .meta({ description: 'The schema of the payloads without changes. The value is null if there is no schema.' }),
}).meta({ id: 'CatalogEntry' });

/** Returns the status of a stream, using the terms of the specification. */
function streamStatus({ spec }: Pick<Cached<'CatalogStream'>, 'spec'>): z.output<typeof StreamState> {
  return spec.public === true ? 'Published' : 'Deprecated';
}

function appliedStream(stream: Cached<'CatalogStream'>): z.output<typeof AppliedStream> {
  const { namespace = '', name } = stream.metadata;
  return { publicId: publicId('CatalogStream', namespace, name), key: name, status: streamStatus(stream) };
}

/**
 * Cache of fingerprints by spec. Without it, hashing a page on every call would take as long as sending the schemas.
 */
const fingerprints = new WeakMap<object, { readonly bytes: number; readonly sha256: string }>();

function fingerprintOf({ spec }: Cached<'CatalogStream'>): {
  readonly bytes: number | null;
  readonly sha256: string | null;
} {
  if (spec.payloadSchema === undefined) return { bytes: null, sha256: null };
  let known = fingerprints.get(spec);
  if (known === undefined) {
    const text = Buffer.from(spec.payloadSchema);
    known = { bytes: text.length, sha256: createHash('sha256').update(text).digest('hex') };
    fingerprints.set(spec, known);
  }
  return known;
}

/** Returns a catalog entry for a list. Producers and partners get the same entry. */
export function listedEntry(stream: Cached<'CatalogStream'>): z.output<typeof ListedCatalogEntry> {
  const { metadata, spec } = stream;
  const { bytes, sha256 } = fingerprintOf(stream);
  return {
    ...appliedStream(stream),
    name: spec.name ?? metadata.name,
    description: spec.description ?? null,
    eventTypes: spec.eventTypes ?? [],
    payloadSchemaBytes: bytes,
    payloadSchemaSha256: sha256,
    queue: { name: metadata.name, visibility: 'Public' },
    ingressPath: `/events/${tenantId(metadata.namespace ?? '')}/${metadata.name}`,
  };
}

function catalogEntry(stream: Cached<'CatalogStream'>): z.output<typeof CatalogEntry> {
  return { ...listedEntry(stream), payloadSchema: stream.spec.payloadSchema ?? null };
}

const applyStream = defineRoute({
  method: 'PUT',
  path: '/waas/streams',
  access: 'producer',
  operation: 'applyStream',
  tag: 'Streams',
  summary: 'Apply a stream',
  description:
    'Creates or updates a stream to match the request body. This call is declarative, and you can safely repeat it. When you create the first stream, the workspace becomes a producer. The call returns when ingress accepts events of the stream.',
  body: StreamApply,
  largeBody: true,
  answers: { 200: { description: 'The stream matches the body and is in force.', schema: AppliedStream } },
  problems: ['stream_name_conflict', 'field_managed'],
  async handle({ caches, writer }, { tenant, body }) {
    const object = { namespace: tenant.name, name: slugOf(body.name, 's') };
    const applied = await writer.edit(async () => {
      const before = await caches.live('CatalogStream', object);
      if (before !== undefined && (before.spec.name ?? object.name) !== body.name) {
        const detail = `The stream ${JSON.stringify(before.spec.name ?? object.name)} already uses the key ${object.name}.`;
        throw refuseBecause('stream_name_conflict', detail);
      }
      const { description, payloadSchema } = body;
      const eventTypes = [...new Set(body.eventTypes)].toSorted();
      return writer.apply('CatalogStream', object, {
        manager: FIELD_MANAGER.facade,
        before,
        concern: ['name', 'description', 'eventTypes', 'payloadSchema', 'public'],
        spec: {
          // Leave an unset name as it is. The object name will be used instead.
          ...(before !== undefined && before.spec.name === undefined ? {} : { name: body.name }),
          ...(description === undefined ? {} : { description }),
          ...(eventTypes.length === 0 ? {} : { eventTypes }),
          ...(payloadSchema === undefined ? {} : { payloadSchema }),
          public: body.isPublic ?? false,
        },
      });
    });
    const stream = await writer.waitFor('CatalogStream', applied);
    return { status: 200, body: appliedStream(stream), about: { kind: 'CatalogStream', ...object } };
  },
});

const listCatalog = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/catalog',
  access: 'producer',
  operation: 'listCatalog',
  tag: 'Streams',
  summary: "List the producer's streams",
  description:
    'The entries do not contain the payload schema. To get the schema, read a single entry. A page ends when it reaches `limit` entries or 1 MiB.',
  query: PageQuery.extend({
    status: z
      .enum(['Published', 'Deprecated', 'all'])
      .optional()
      .meta({ description: 'Returns only streams with this status. Defaults to Published.' }),
  }),
  answers: { 200: { description: 'A page of catalog entries, sorted by key.', schema: pageOf(ListedCatalogEntry) } },
  problems: ['malformed_cursor'],
  async handle({ caches }, { tenant, query }) {
    const { status = 'Published' } = query;
    const streams = caches
      .list('CatalogStream', tenant.name)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .filter(stream => status === 'all' || streamStatus(stream) === status);
    const { data, nextCursor } = paginate(streams, ({ metadata }) => metadata.name, query, listedEntry);
    return { status: 200, body: { data: data.map(listedEntry), nextCursor } };
  },
});

const getStream = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/catalog/{catalogEntryPublicId}',
  access: 'producer',
  operation: 'getCatalogEntry',
  tag: 'Streams',
  summary: 'Read one stream',
  answers: { 200: { description: 'The catalog entry.', schema: CatalogEntry } },
  problems: ['unknown_resource'],
  async handle(facade, { tenant, params }) {
    return {
      status: 200,
      body: catalogEntry(await findOwned(facade.caches, 'CatalogStream', tenant.name, params.catalogEntryPublicId)),
    };
  },
});

export const STREAM_ROUTES = [applyStream, listCatalog, getStream];
