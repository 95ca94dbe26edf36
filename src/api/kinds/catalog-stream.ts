import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { ContextHeaders } from '../context-headers.ts';
import { durationBetween } from '../durations.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { immutableOnceSet, withRule, withTransitions } from '../rules.ts';
import { displayName, text, visibleAscii } from '../strings.ts';

/** The maximum size of a payload schema: 128 KiB of UTF-8. */
const PAYLOAD_SCHEMA_MAX_BYTES = 131_072;

export const CatalogStreamSpec = withTransitions(
  z.object({
    name: displayName({ min: 1, max: 128 })
      .describe(
        'The display name, between 1 and 128 characters long, on a single line. Defaults to metadata.name. This field cannot be changed after it has been set.',
      )
      .optional(),
    description: text({ max: 1024 })
      .describe('The description displayed in the catalog, up to 1,024 characters long.')
      .optional(),
    eventTypes: atomicList(
      visibleAscii(128, 'order.created').describe(
        'An event type, which consists of 1 to 128 visible ASCII characters.',
      ),
      { max: 256 },
    )
      .describe(
        'The event types that ingress accepts. It rejects all others with 422 unknown_event_type. To accept any type, leave the list empty. Duplicates are ignored.',
      )
      .optional(),
    payloadSchema: withRule(text({ max: PAYLOAD_SCHEMA_MAX_BYTES }), {
      rule: `bytes(self).size() <= ${PAYLOAD_SCHEMA_MAX_BYTES}`,
      message: 'must be at most 131072 bytes (128 KiB) of UTF-8',
      holds: value => new TextEncoder().encode(value).length <= PAYLOAD_SCHEMA_MAX_BYTES,
    })
      .describe(
        'The payload schema in a language of your choice, up to 128 KiB. Sluice stores and shows it unchanged. It does not use it to validate events. For objects larger than about 200 KB, use server-side apply.',
      )
      .optional(),
    public: z
      .boolean()
      .describe(
        'If true, the stream is published in the catalog and accepts subscriptions. If false, the stream is deprecated, but existing subscriptions continue. Defaults to false.',
      )
      .optional(),
    contextHeaders: ContextHeaders.optional(),
    retention: durationBetween('1h', '720h')
      .default('168h')
      .describe(
        'The retention period of events, which are kept for retries, pauses, and replays, whether or not they have been delivered. When the period ends, scheduled retries are dropped. Must be between 1h and 720h. Defaults to 168h.',
      ),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'Specifies what happens to the queue when you delete the stream. With `Retain`, the stream stops accepting events. Its queue is removed after the remaining events have been delivered. `Delete` removes the queue immediately. Defaults to Retain.',
      ),
  }),
  immutableOnceSet('name'),
).describe('The desired state of the stream.');
export type CatalogStreamSpec = z.infer<typeof CatalogStreamSpec>;

export const CatalogStreamStatus = z
  .object({
    ...statusFields,
    queue: z.string().max(63).describe('The queue name, which always matches metadata.name.').optional(),
    queueVisibility: z
      .enum(['Public'])
      .describe(
        'Always Public: any partner of the producer can subscribe, unless a Block prevents it. Deprecated streams stay Public for their existing subscriptions.',
      )
      .optional(),
    ingressPath: z
      .string()
      .max(256)
      .describe('The ingress path for publishing events to this stream, e.g. /events/ten_…/orders.')
      .optional(),
    tenantPublicId: z.string().max(64).describe('The public id of the workspace, e.g. ten_….').optional(),
  })
  .describe('The most recently observed status of the stream.');
export type CatalogStreamStatus = z.infer<typeof CatalogStreamStatus>;

export const CatalogStream = defineKind({
  kind: 'CatalogStream',
  plural: 'catalogstreams',
  shortNames: ['cstream'],
  scope: 'Namespaced',
  description:
    'CatalogStream is a stream of the workspace that owns the namespace, and its entry in the catalog. The first stream makes a workspace a producer. The metadata.name is the key of the stream and the name of its queue. The REST API derives it from the name, using lowercase Latin letters, digits, and hyphens. If the name has none of these characters, the key is a hash with the prefix s-.',
  spec: CatalogStreamSpec,
  status: CatalogStreamStatus,
  columns: [
    conditionColumn('Published', 'Published', 'status', 'Indicates whether the stream is listed in the catalog.'),
  ],
});
export type CatalogStream = z.infer<typeof CatalogStream.schema>;
