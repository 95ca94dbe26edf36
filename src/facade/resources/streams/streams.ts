import { createHash } from 'node:crypto';
import { z } from 'zod';
import { CatalogStreamSpec } from '../../../api/kinds/catalog-stream.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import type { ListName } from '../../../core/ids/list-cursor.ts';
import { slugOf } from '../../../core/ids/slug.ts';
import { refuseBecause } from '../../../http/refusal.ts';
import { inSlices, type Steps } from '../../../time/slices.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginatePrepared } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import { findOwned } from '../../objects/owned-objects.ts';

const spec = CatalogStreamSpec.shape;

const StreamApply = z
  .strictObject({
    producerTenantPublicId: publicIdField('Workspace'),
    name: spec.name.unwrap().meta({
      description:
        "The stream's name, 1 to 128 characters long, on a single line. Its key, which is also the name of its queue, is derived from the name, using lowercase Latin letters, digits, and hyphens. If the name has none of these characters, the key is a hash with the prefix s-.",
      example: 'Orders',
    }),
    description: spec.description.meta({ example: 'What was ordered, paid and sent.' }),
    eventTypes: spec.eventTypes.meta({ example: ['order.made', 'order.paid'] }),
    payloadSchema: spec.payloadSchema.meta({
      description:
        'The payload schema in a language of your choice, up to 128 KiB. Sluice stores and shows it unchanged. It does not use it to validate events.',
      example: '{"type":"object"}',
    }),
    isPublic: z.boolean().optional().meta({
      description: 'If true, the status of the stream is Published. If false, it is Deprecated. Defaults to false.',
      example: true,
    }),
  })
  .meta({
    id: 'StreamApply',
    description: 'The desired state of the stream.',
  });

const StreamState = z.enum(['Published', 'Deprecated']).meta({
  description:
    "The stream's status. Published streams are listed in the catalog and accept new subscriptions. Deprecated streams only keep their existing subscriptions.",
});

const AppliedStream = z
  .object({
    publicId: publicIdField('CatalogStream'),
    key: z.string().meta({ description: 'The stream key, which is also the name of its queue.', example: 'orders' }),
    status: StreamState,
  })
  .meta({ id: 'AppliedStream' });

/** Shown instead of the schema in a list. */
export const SCHEMA_FACTS = {
  payloadSchemaBytes: z.int().min(0).nullable().meta({
    description: 'The size of the payloadSchema (UTF-8) in bytes, or null if there is no schema.',
    example: 17,
  }),
  payloadSchemaSha256: z.string().nullable().meta({
    description:
      'The SHA-256 hash of the payloadSchema in UTF-8 as a hexadecimal string, or null if there is no schema.',
  }),
};

/** Catalog entry in a list. We leave out the schema because the schemas on one page could add up to 32 MiB. */
const ListedCatalogEntry = AppliedStream.extend({
  name: z.string().meta({ description: "The stream's name." }),
  description: z.string().nullable().meta({ description: 'An optional description of the stream.' }),
  eventTypes: z
    .array(z.string())
    .meta({ description: 'The event types that the stream accepts. An empty list means that it accepts all types.' }),
  ...SCHEMA_FACTS,
  queue: z
    .object({
      name: z.string().meta({ description: 'The queue name, which is the same as the stream key.', example: 'orders' }),
      visibility: z.literal('Public').meta({
        description: 'The visibility of the stream. Public streams are visible to all integrations.',
      }),
    })
    .meta({ description: 'The queue that belongs to the stream.' }),
  ingressPath: z.string().meta({ description: 'The ingress path for publishing events to this stream.' }),
}).meta({ id: 'ListedCatalogEntry' });

const CatalogEntry = ListedCatalogEntry.extend({
  payloadSchema: z
    .string()
    .nullable()
    .meta({ description: 'The payload schema exactly as it was provided, or null if the stream has no schema.' }),
}).meta({ id: 'CatalogEntry' });

/** Returns the stream status. Uses the terminology of the specification. */
function streamStatus({ spec }: Pick<Cached<'CatalogStream'>, 'spec'>): z.output<typeof StreamState> {
  return spec.public === true ? 'Published' : 'Deprecated';
}

function appliedStream(stream: Cached<'CatalogStream'>): z.output<typeof AppliedStream> {
  const { namespace = '', name } = stream.metadata;
  return { publicId: publicId('CatalogStream', namespace, name), key: name, status: streamStatus(stream) };
}

function fingerprintOf({ spec }: Cached<'CatalogStream'>): {
  readonly bytes: number | null;
  readonly sha256: string | null;
} {
  if (spec.payloadSchema === undefined) return { bytes: null, sha256: null };
  const text = Buffer.from(spec.payloadSchema);
  return { bytes: text.length, sha256: createHash('sha256').update(text).digest('hex') };
}

function createListedEntry(stream: Cached<'CatalogStream'>): z.output<typeof ListedCatalogEntry> {
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

interface Listed {
  readonly entry: z.output<typeof ListedCatalogEntry>;
  /** The size of the entry as JSON. */
  readonly bytes: number;
}

/**
 * The entries of all streams that have been listed, until a stream changes. If a call had to hash the schemas and ids
 * of a page, this would take longer than everything else.
 */
const listed = new WeakMap<object, Listed>();

function listedOf(stream: Cached<'CatalogStream'>): Listed {
  let known = listed.get(stream);
  if (known === undefined) {
    const entry = createListedEntry(stream);
    listed.set(stream, (known = { entry, bytes: Buffer.byteLength(JSON.stringify(entry)) }));
  }
  return known;
}

/**
 * Returns the catalog entry for a list, which is the same for producers and partners. The caller must not modify the
 * entry.
 */
export function listedEntry(stream: Cached<'CatalogStream'>): z.output<typeof ListedCatalogEntry> {
  return listedOf(stream).entry;
}

/** Returns the size of a listed entry as JSON, in bytes. */
export function listedBytes(stream: Cached<'CatalogStream'>): number {
  return listedOf(stream).bytes;
}

function* createEntries(streams: readonly Cached<'CatalogStream'>[]): Steps<void> {
  for (const stream of streams) {
    listedOf(stream);
    yield;
  }
}

/**
 * Returns a page of streams, sorted by key. The schemas of a page can add up to 32 MiB, so those that have not been
 * hashed yet are hashed in slices.
 */
export function pageOfStreams(
  list: ListName,
  streams: readonly Cached<'CatalogStream'>[],
  query: z.output<typeof PageQuery>,
): ReturnType<typeof paginatePrepared<Cached<'CatalogStream'>>> {
  return paginatePrepared(list, streams, ({ metadata }) => metadata.name, query, {
    prepare: async page => {
      const missing = page.filter(stream => !listed.has(stream));
      if (missing.length > 0) await inSlices(createEntries(missing));
    },
    bytesOf: listedBytes,
  });
}

function catalogEntry(stream: Cached<'CatalogStream'>): z.output<typeof CatalogEntry> {
  return { ...listedEntry(stream), payloadSchema: stream.spec.payloadSchema ?? null };
}

const applyStream = defineRoute({
  method: 'PUT',
  path: '/waas/streams',
  access: 'producer',
  scope: 'waas:write',
  operation: 'applyStream',
  tag: 'Streams',
  summary: 'Apply a stream',
  description:
    'Creates a stream, or updates it to match the body. If an optional field is omitted, its value is removed. When the request returns, ingress accepts events for the stream. You can safely repeat the request. The first stream makes your workspace a producer.',
  body: StreamApply,
  largeBody: true,
  answers: { 200: { description: 'The stream matches the request body and is in force.', schema: AppliedStream } },
  problems: ['limit_reached', 'stream_name_conflict', 'field_managed'],
  async handle({ caches, writer }, { tenant, body }) {
    const object = { namespace: tenant.name, name: slugOf(body.name, 's') };
    const applied = await writer.edit(async () => {
      const before = await caches.live('CatalogStream', object);
      if (before !== undefined && (before.spec.name ?? object.name) !== body.name) {
        const name = JSON.stringify(before.spec.name ?? object.name);
        const detail = `The stream ${name} already uses the key ${object.name}. To change this stream, send ${name} as its name.`;
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
    // A later call may have changed the stream in the meantime, so the response contains the state that this call has
    // applied.
    await writer.waitFor('CatalogStream', applied);
    return { status: 200, body: appliedStream(applied), about: { kind: 'CatalogStream', ...object } };
  },
});

const listCatalog = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/catalog',
  access: 'producer',
  scope: 'waas:read',
  operation: 'listCatalog',
  tag: 'Streams',
  summary: "List all of the producer's streams",
  description:
    'Payload schemas are not included in the list. To get the schema, retrieve a single entry. A page contains up to `limit` entries or 1 MiB, whichever is reached first.',
  query: PageQuery.extend({
    status: z
      .enum(['Published', 'Deprecated', 'all'])
      .optional()
      .meta({ description: 'Only return streams with the given status. Defaults to Published.' }),
  }),
  answers: { 200: { description: 'A list of catalog entries, sorted by key.', schema: pageOf(ListedCatalogEntry) } },
  problems: ['malformed_cursor'],
  async handle({ caches }, { tenant, query }) {
    const { status = 'Published' } = query;
    const streams = caches
      .list('CatalogStream', tenant.name)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .filter(stream => status === 'all' || streamStatus(stream) === status);
    const { data, nextCursor } = await pageOfStreams(['catalog', tenant.name], streams, query);
    return { status: 200, body: { data: data.map(listedEntry), nextCursor } };
  },
});

const getStream = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/catalog/{catalogEntryPublicId}',
  access: 'producer',
  scope: 'waas:read',
  operation: 'getCatalogEntry',
  tag: 'Streams',
  summary: 'Retrieve a stream',
  answers: { 200: { description: 'The requested catalog entry.', schema: CatalogEntry } },
  problems: ['unknown_resource'],
  async handle(facade, { tenant, params }) {
    return {
      status: 200,
      body: catalogEntry(await findOwned(facade.caches, 'CatalogStream', tenant.name, params.catalogEntryPublicId)),
    };
  },
});

export const STREAM_ROUTES = [applyStream, listCatalog, getStream];
