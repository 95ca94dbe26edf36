import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { ContextHeaders } from '../context-headers.ts';
import { durationBetween } from '../durations.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { immutableOnceSet, withRule, withTransitions } from '../rules.ts';
import { text, visibleAscii } from '../strings.ts';

/** Maximum size of a payload schema: 128 KiB of UTF-8. */
const PAYLOAD_SCHEMA_MAX_BYTES = 131_072;

export const CatalogStreamSpec = withTransitions(
  z.object({
    name: text({ min: 1, max: 128 })
      .describe(
        'The display name, with 1 to 128 characters. Defaults to metadata.name. You cannot change this field after you set it.',
      )
      .optional(),
    description: text({ max: 1024 })
      .describe('The description that is shown in the catalog, with at most 1,024 characters.')
      .optional(),
    eventTypes: atomicList(visibleAscii(128).describe('An event type, with 1 to 128 visible ASCII characters.'), {
      max: 256,
    })
      .describe(
        'The event types that ingress accepts. Ingress rejects other types with 422 unknown_event_type. If this field is empty or not set, all types are accepted. Duplicates are ignored.',
      )
      .optional(),
    payloadSchema: withRule(text({ max: PAYLOAD_SCHEMA_MAX_BYTES }), {
      rule: `bytes(self).size() <= ${PAYLOAD_SCHEMA_MAX_BYTES}`,
      message: 'must be at most 131072 bytes (128 KiB) of UTF-8',
      holds: value => new TextEncoder().encode(value).length <= PAYLOAD_SCHEMA_MAX_BYTES,
    })
      .describe(
        'The schema of the payloads in any schema language, with at most 128 KiB. The schema is stored and shown without changes, and events are not validated against it. If the object is larger than about 200 KB, you must use server-side apply.',
      )
      .optional(),
    public: z
      .boolean()
      .describe(
        'If true, the stream is published in the catalog and accepts subscriptions. If false, the stream is deprecated and existing subscriptions continue. Defaults to false.',
      )
      .optional(),
    contextHeaders: ContextHeaders.optional(),
    retention: durationBetween('1h', '720h')
      .default('168h')
      .describe(
        'The length of time that the stream keeps its events for retries, pauses and replays, from 1h to 720h. This applies to all events, including delivered events. Retries that are scheduled after this time are not made. Defaults to 168h.',
      ),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'Specifies how the queue is handled when you delete the stream. If set to Retain, the queue does not accept new events, and it is removed after the remaining events are delivered. If set to Delete, the queue is removed immediately. Defaults to Retain.',
      ),
  }),
  immutableOnceSet('name'),
).describe('The desired state of the stream.');
export type CatalogStreamSpec = z.infer<typeof CatalogStreamSpec>;

export const CatalogStreamStatus = z
  .object({
    ...statusFields,
    queue: z.string().max(63).describe('The name of the queue, which is the same as metadata.name.').optional(),
    queueVisibility: z
      .enum(['Public'])
      .describe(
        'The access to the queue. The value is always Public, so that every partner of the producer can subscribe unless a Block applies. After you deprecate a stream, its queue stays Public for existing subscriptions.',
      )
      .optional(),
    ingressPath: z
      .string()
      .max(256)
      .describe('The path on which the ingress role accepts events of this stream, such as /events/ten_…/orders.')
      .optional(),
    tenantPublicId: z.string().max(64).describe('The public id of the workspace, such as ten_….').optional(),
  })
  .describe('The observed state of the stream.');
export type CatalogStreamStatus = z.infer<typeof CatalogStreamStatus>;

export const CatalogStream = defineKind({
  kind: 'CatalogStream',
  plural: 'catalogstreams',
  shortNames: ['cstream'],
  scope: 'Namespaced',
  description:
    'A CatalogStream is a stream of the workspace that owns the namespace. It is also the entry of the stream in the catalog. When you create the first stream, the workspace becomes a producer. The metadata.name is the key of the stream and the name of its queue. The REST API derives it from the name and only uses lowercase Latin letters, digits and hyphens. If the name does not contain any of these characters, the key consists of s- and a hash.',
  spec: CatalogStreamSpec,
  status: CatalogStreamStatus,
  columns: [conditionColumn('Published', 'Published', 'status', 'Whether the stream is in the catalog.')],
});
export type CatalogStream = z.infer<typeof CatalogStream.schema>;
