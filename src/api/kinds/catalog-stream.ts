import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { ContextHeaders } from '../context-headers.ts';
import { durationBetween } from '../durations.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { immutableOnceSet, withRule, withTransitions } from '../rules.ts';
import { text, visibleAscii } from '../strings.ts';

/** Maximum size of a payload schema in bytes of UTF-8: 128 KiB. */
const PAYLOAD_SCHEMA_MAX_BYTES = 131_072;

export const CatalogStreamSpec = withTransitions(
  z.object({
    name: text({ min: 1, max: 128 })
      .describe('Display name, 1 to 128 characters. Absent: metadata.name. Immutable once set.')
      .optional(),
    description: text({ max: 1024 }).describe('Description for the catalog. At most 1,024 characters.').optional(),
    eventTypes: atomicList(visibleAscii(128).describe('One event type, 1 to 128 characters of visible ASCII.'), {
      max: 256,
    })
      .describe(
        'Event types that ingress accepts. It refuses others with 422 unknown_event_type. Absent or empty: all. Duplicates are ignored.',
      )
      .optional(),
    payloadSchema: withRule(text({ max: PAYLOAD_SCHEMA_MAX_BYTES }), {
      rule: `bytes(self).size() <= ${PAYLOAD_SCHEMA_MAX_BYTES}`,
      message: 'must be at most 131072 bytes (128 KiB) of UTF-8',
      holds: value => new TextEncoder().encode(value).length <= PAYLOAD_SCHEMA_MAX_BYTES,
    })
      .describe(
        'Schema of the payloads, in any language. Stored and shown verbatim; events are not validated against it. At most 128 KiB. Use server-side apply if the whole object is larger than about 200 KB.',
      )
      .optional(),
    public: z
      .boolean()
      .describe(
        'True: published, in the catalog and open for subscriptions. False or absent: deprecated; existing subscriptions continue.',
      )
      .optional(),
    contextHeaders: ContextHeaders.optional(),
    retention: durationBetween('1h', '720h')
      .default('168h')
      .describe(
        'How long the stream keeps its events, delivered or not, for retries, pauses and replays: 1h to 720h. Default 168h. Retries that the retry schedule puts after it do not happen.',
      ),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'What happens to the queue when you delete the stream. Retain (default): it accepts no more events, delivers the rest and is then removed. Delete: it is removed at once.',
      ),
  }),
  immutableOnceSet('name'),
).describe('Desired state of the stream.');
export type CatalogStreamSpec = z.infer<typeof CatalogStreamSpec>;

export const CatalogStreamStatus = z
  .object({
    ...statusFields,
    queue: z.string().max(63).describe('Name of the queue: metadata.name.').optional(),
    queueVisibility: z
      .enum(['Public'])
      .describe(
        'Who may subscribe to the queue. Always Public: every partner of the producer, unless a Block covers it. The queue of a deprecated stream stays Public for its existing subscriptions.',
      )
      .optional(),
    ingressPath: z
      .string()
      .max(256)
      .describe('Path of the ingress role that accepts events of this stream, for example /events/ten_…/orders.')
      .optional(),
    tenantPublicId: z.string().max(64).describe('Public id of the workspace, ten_….').optional(),
  })
  .describe('Observed state of the stream.');
export type CatalogStreamStatus = z.infer<typeof CatalogStreamStatus>;

export const CatalogStream = defineKind({
  kind: 'CatalogStream',
  plural: 'catalogstreams',
  shortNames: ['cstream'],
  scope: 'Namespaced',
  description:
    'A stream of the workspace that owns the namespace, and its entry in the catalog. The first stream makes the workspace a producer. metadata.name is the key of the stream and the name of its queue. REST derives it from the name: a slug of lower-case Latin letters, digits and -. A name without any of these becomes s- and a hash.',
  spec: CatalogStreamSpec,
  status: CatalogStreamStatus,
  columns: [conditionColumn('Published', 'Published', 'status', 'True: in the catalog. False: deprecated.')],
});
export type CatalogStream = z.infer<typeof CatalogStream.schema>;
