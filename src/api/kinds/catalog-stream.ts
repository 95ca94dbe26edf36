import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { ContextHeaders } from '../context-headers.ts';
import { durationBetween } from '../durations.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { immutableOnceSet, withRule, withTransitions } from '../rules.ts';
import { text, visibleAscii } from '../strings.ts';

/** Most bytes of UTF-8 of a payload schema: 128 KiB. */
export const PAYLOAD_SCHEMA_MAX_BYTES = 131_072;

export const CatalogStreamSpec = withTransitions(
  z.object({
    name: text({ min: 1, max: 128 })
      .describe('Name as people write it, 1 to 128 characters. Absent: metadata.name. Immutable once set.')
      .optional(),
    description: text({ max: 1024 })
      .describe('What the stream carries, for the catalog. At most 1,024 characters.')
      .optional(),
    eventTypes: atomicList(visibleAscii(128).describe('One event type, 1 to 128 characters of visible ASCII.'), {
      max: 256,
    })
      .describe(
        'Event types that ingress accepts; others are refused (422 unknown_event_type). Absent or empty: all. Duplicates are ignored.',
      )
      .optional(),
    payloadSchema: withRule(text({ max: PAYLOAD_SCHEMA_MAX_BYTES }), {
      rule: `bytes(self).size() <= ${PAYLOAD_SCHEMA_MAX_BYTES}`,
      message: 'has to be at most 131072 bytes (128 KiB) of UTF-8',
      holds: value => new TextEncoder().encode(value).length <= PAYLOAD_SCHEMA_MAX_BYTES,
    })
      .describe(
        'Schema of the payloads, in any language. Opaque: kept and shown verbatim, never applied to an event. At most 128 KiB; above about 200 KB for the whole object, apply server-side.',
      )
      .optional(),
    public: z
      .boolean()
      .describe(
        'True: published, in the catalog and open for subscriptions. False or absent: deprecated; existing subscriptions go on.',
      )
      .optional(),
    contextHeaders: ContextHeaders.optional(),
    retention: durationBetween('1h', '720h')
      .default('168h')
      .describe(
        'How long events are kept, delivered or not, for retries, pauses and replays: 1h to 720h. Default 168h. Shorter than the retry schedule means that late retries do not happen.',
      ),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'What deleting the stream does to its queue. Retain (default): it takes no more events, is delivered to the end and then goes. Delete: it goes at once.',
      ),
  }),
  immutableOnceSet('name'),
).describe('What the producer wants of the stream.');
export type CatalogStreamSpec = z.infer<typeof CatalogStreamSpec>;

export const CatalogStreamStatus = z
  .object({
    ...statusFields,
    queue: z.string().max(63).describe('Name of the queue: metadata.name.').optional(),
    queueVisibility: z
      .enum(['Public'])
      .describe(
        "Who may be subscribed to the queue. Always Public: every partner of the producer, where no Block keeps it back; a deprecated stream's queue stays Public for the subscriptions that it has.",
      )
      .optional(),
    ingressPath: z
      .string()
      .max(256)
      .describe('Path on the ingress role that takes events of this stream, as /events/ten_…/orders.')
      .optional(),
    tenantPublicId: z.string().max(64).describe('Public id of the workspace, ten_….').optional(),
  })
  .describe('What the controller has made of it.');
export type CatalogStreamStatus = z.infer<typeof CatalogStreamStatus>;

export const CatalogStream = defineKind({
  kind: 'CatalogStream',
  plural: 'catalogstreams',
  shortNames: ['cstream'],
  scope: 'Namespaced',
  description:
    "An event stream of the workspace that owns the namespace, and its entry in the catalog. The first one makes the workspace a producer. metadata.name is the stream's key and its queue's name. REST makes it of the name: a slug of lower-case Latin letters, digits and -; a name without any becomes s- and a hash.",
  spec: CatalogStreamSpec,
  status: CatalogStreamStatus,
  columns: [conditionColumn('Published', 'Published', 'status', 'True: in the catalog. False: deprecated.')],
});
export type CatalogStream = z.infer<typeof CatalogStream.schema>;
