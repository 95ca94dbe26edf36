import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { DeliveryStatus } from '../delivery-status.ts';
import { Endpoint } from '../endpoint.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName, timestamp } from '../strings.ts';

export const SubscriptionSpec = withTransitions(
  z.object({
    producer: objectName().describe('Name of the Workspace that produces. Immutable.'),
    integration: objectName().describe(
      "metadata.name of the producer's Integration, whose spec.workspace has to name this namespace. Immutable.",
    ),
    stream: objectName().describe("metadata.name of the producer's CatalogStream. Immutable."),
    endpoint: Endpoint.optional(),
    ordering: z
      .enum(['ByGroupKey', 'None'])
      .default('ByGroupKey')
      .describe(
        'ByGroupKey (default): a later event of a group key waits until the earlier one is delivered, skipped or dead. None: nothing waits for anything. Immutable.',
      ),
    suspended: z
      .boolean()
      .describe('True: routing to this subscription pauses; nothing is lost within the retention. Absent: false.')
      .optional(),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'What deleting the subscription does to its inbox. Retain (default): its records stay readable until the retention ends; nothing more is sent. Delete: they go at once.',
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
).describe('What the partner receives, and where.');
export type SubscriptionSpec = z.infer<typeof SubscriptionSpec>;

export const SubscriptionStatus = z
  .object({
    ...statusFields,
    admittedAt: timestamp()
      .describe('When the grant was first found (RFC 3339). Routing starts no earlier.')
      .optional(),
    signing: z
      .object({
        version: z
          .int()
          .min(1)
          .max(1_000_000)
          .meta({ format: 'int32' })
          .describe('Version of the newest secret that signs.')
          .optional(),
        rotatedAt: timestamp()
          .describe('When it became the newest (RFC 3339); the one before signs for 24 hours more.')
          .optional(),
      })
      .describe('State of the signing secret.')
      .optional(),
    endpoint: z
      .object({
        disabledAt: timestamp()
          .describe(
            'When it was disabled (RFC 3339, milliseconds); it stays so until spec.endpoint.enabledAt is later.',
          )
          .optional(),
        disabledBy: z
          .enum(['Gone', 'Failing'])
          .describe('Gone: it answered 410. Failing: no attempt succeeded for five days.')
          .optional(),
      })
      .describe('State of the endpoint; only while it is disabled.')
      .optional(),
    delivery: DeliveryStatus.optional(),
    reason: z
      .string()
      .max(63)
      .describe(
        'What `kubectl get` prints as REASON: why events do not flow, which is the reason of Live while Live is not True and the object is admitted, else the reason of Ready.',
      )
      .optional(),
  })
  .describe('What the controller has made of it.');
export type SubscriptionStatus = z.infer<typeof SubscriptionStatus>;

export const Subscription = defineKind({
  kind: 'Subscription',
  plural: 'subscriptions',
  shortNames: ['wsub'],
  scope: 'Namespaced',
  description:
    "A partner's consent to receive one stream: it lives in the receiving workspace's namespace and works when the producer's Integration grants that workspace.",
  spec: SubscriptionSpec,
  status: SubscriptionStatus,
  rules: [
    {
      // Removing the endpoint and adding it again would pass the transition rule; the status remembers.
      rule: '!has(self.spec.endpoint) || self.spec.endpoint.?secretVersion.orValue(1) >= self.?status.?signing.?version.orValue(1)',
      message: 'secretVersion only grows: it has to be at least status.signing.version',
      fieldPath: '.spec.endpoint.secretVersion',
    },
  ],
  columns: [
    { name: 'Producer', type: 'string', jsonPath: '.spec.producer', description: 'The producing workspace.' },
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
      description: 'Whether there are dead letters.',
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
