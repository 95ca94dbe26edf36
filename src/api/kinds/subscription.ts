import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { DeliveryStatus } from '../delivery-status.ts';
import { Endpoint } from '../endpoint.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName, timestamp } from '../strings.ts';

export const SubscriptionSpec = withTransitions(
  z.object({
    producer: objectName().describe('Name of the producer Workspace. Immutable.'),
    integration: objectName().describe(
      "metadata.name of the producer's Integration. Its spec.workspace must name this namespace. Immutable.",
    ),
    stream: objectName().describe("metadata.name of the producer's CatalogStream. Immutable."),
    endpoint: Endpoint.optional(),
    ordering: z
      .enum(['ByGroupKey', 'None'])
      .default('ByGroupKey')
      .describe(
        'ByGroupKey (default): an event waits until the one before it with the same group key is delivered, skipped or dead. None: events do not wait for each other. Immutable.',
      ),
    suspended: z
      .boolean()
      .describe('True: routing to this subscription pauses. Events are kept within the retention. Absent: false.')
      .optional(),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'What happens to the inbox when you delete the subscription. Retain (default): its records stay readable until the retention ends, and nothing more is sent. Delete: they are removed at once.',
      ),
  }),
  immutable('producer'),
  immutable('integration'),
  immutable('stream'),
  immutable('ordering'),
  {
    rule: '!has(oldSelf.endpoint) || !has(self.endpoint) || self.endpoint.?secretVersion.orValue(1) >= oldSelf.endpoint.?secretVersion.orValue(1)',
    message: 'secretVersion only grows: an older secret may have leaked',
    fieldPath: '.endpoint.secretVersion',
  },
).describe('The stream to receive, and how to deliver it.');
export type SubscriptionSpec = z.infer<typeof SubscriptionSpec>;

export const SubscriptionStatus = z
  .object({
    ...statusFields,
    admittedAt: timestamp()
      .describe('When the grant was first found (RFC 3339). Routing starts then, at the earliest.')
      .optional(),
    signing: z
      .object({
        version: z
          .int()
          .min(1)
          .max(1_000_000)
          .meta({ format: 'int32' })
          .describe('Version of the newest signing secret.')
          .optional(),
        rotatedAt: timestamp()
          .describe('When this version became the newest (RFC 3339). The one before signs for another 24 hours.')
          .optional(),
      })
      .describe('State of the signing secret.')
      .optional(),
    endpoint: z
      .object({
        disabledAt: timestamp()
          .describe(
            'When the endpoint was disabled (RFC 3339, milliseconds). It stays disabled until spec.endpoint.enabledAt is later.',
          )
          .optional(),
        disabledBy: z
          .enum(['Gone', 'Failing'])
          .describe('Gone: the endpoint answered 410. Failing: no attempt succeeded for five days.')
          .optional(),
      })
      .describe('State of the endpoint. Present only while it is disabled.')
      .optional(),
    delivery: DeliveryStatus.optional(),
    reason: z
      .string()
      .max(63)
      .describe(
        'What `kubectl get` prints as REASON. If the subscription is admitted and not Live, the reason of Live; else the reason of Ready.',
      )
      .optional(),
  })
  .describe('Observed state of the subscription.');
export type SubscriptionStatus = z.infer<typeof SubscriptionStatus>;

export const Subscription = defineKind({
  kind: 'Subscription',
  plural: 'subscriptions',
  shortNames: ['wsub'],
  scope: 'Namespaced',
  description:
    "A partner's request for one stream, with or without an endpoint. Create it in the namespace of the receiving workspace. It takes effect when the producer's Integration grants that workspace.",
  spec: SubscriptionSpec,
  status: SubscriptionStatus,
  rules: [
    {
      // Removing the endpoint and adding it again would pass the transition rule. The status keeps the version.
      rule: '!has(self.spec.endpoint) || self.spec.endpoint.?secretVersion.orValue(1) >= self.?status.?signing.?version.orValue(1)',
      message: 'secretVersion only grows: it must be at least status.signing.version',
      fieldPath: '.spec.endpoint.secretVersion',
    },
  ],
  columns: [
    { name: 'Producer', type: 'string', jsonPath: '.spec.producer', description: 'The producer workspace.' },
    { name: 'Stream', type: 'string', jsonPath: '.spec.stream', description: 'The stream.' },
    conditionColumn('Live', 'Live', 'status', 'Whether events flow.'),
  ],
  reasonPath: '.status.reason',
  columnsBehind: [
    {
      name: 'Last Attempt',
      type: 'string',
      jsonPath: '.status.delivery.lastAttempt',
      description: 'How the last attempt ended.',
    },
    {
      name: 'Dead',
      type: 'boolean',
      jsonPath: '.status.delivery.deadLetters',
      description: 'Whether the inbox has dead letters.',
    },
    {
      name: 'Backlog',
      type: 'string',
      jsonPath: '.status.delivery.backlog',
      description: 'How many events wait, as a power of ten.',
    },
  ],
});
export type Subscription = z.infer<typeof Subscription.schema>;
