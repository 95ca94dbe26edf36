import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { DeliveryStatus } from '../delivery-status.ts';
import { Endpoint } from '../endpoint.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName, timestamp } from '../strings.ts';

export const SubscriptionSpec = withTransitions(
  z.object({
    producer: objectName().describe("The name of the producer's Workspace. This field is immutable."),
    integration: objectName().describe(
      "The metadata.name of the producer's Integration. The spec.workspace field of the Integration must contain the name of this namespace. This field is immutable.",
    ),
    stream: objectName().describe("The metadata.name of the producer's CatalogStream. This field is immutable."),
    endpoint: Endpoint.optional(),
    ordering: z
      .enum(['ByGroupKey', 'None'])
      .default('ByGroupKey')
      .describe(
        'The order in which events are delivered. With ByGroupKey, an event waits until the previous event with the same group key is delivered, skipped or dead. With None, events do not wait for each other. Defaults to ByGroupKey. This field is immutable.',
      ),
    suspended: z
      .boolean()
      .describe(
        'If true, routing to this subscription is paused. Events are kept until their retention period ends. Defaults to false.',
      )
      .optional(),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'Specifies how the inbox is handled when you delete the subscription. If set to Retain, you can read its records until the retention period ends, and no more events are sent. If set to Delete, the inbox is removed immediately. Defaults to Retain.',
      ),
  }),
  immutable('producer'),
  immutable('integration'),
  immutable('stream'),
  immutable('ordering'),
  {
    rule: '!has(oldSelf.endpoint) || !has(self.endpoint) || self.endpoint.?secretVersion.orValue(1) >= oldSelf.endpoint.?secretVersion.orValue(1)',
    message: 'secretVersion cannot be decreased because an older secret might have been exposed',
    fieldPath: '.endpoint.secretVersion',
  },
).describe('The stream to receive and how its events are delivered.');
export type SubscriptionSpec = z.infer<typeof SubscriptionSpec>;

export const SubscriptionStatus = z
  .object({
    ...statusFields,
    admittedAt: timestamp()
      .describe('The time (RFC 3339) when the controller first found the grant. Routing cannot start before this time.')
      .optional(),
    signing: z
      .object({
        version: z
          .int()
          .min(1)
          .max(1_000_000)
          .meta({ format: 'int32' })
          .describe('The latest version of the signing secret.')
          .optional(),
        rotatedAt: timestamp()
          .describe(
            'The time (RFC 3339) when this version was created. The previous version is used for another 24 hours.',
          )
          .optional(),
      })
      .describe('The state of the signing secret.')
      .optional(),
    endpoint: z
      .object({
        disabledAt: timestamp()
          .describe(
            'The time when the endpoint was disabled (RFC 3339 with milliseconds). To enable the endpoint, set spec.endpoint.enabledAt to a later time.',
          )
          .optional(),
        disabledBy: z
          .enum(['Gone', 'Failing'])
          .describe(
            'The reason why the endpoint is disabled. Gone means that the endpoint returned status 410. Failing means that the endpoint had no successful delivery for five days.',
          )
          .optional(),
      })
      .describe('The state of the endpoint. This field is only set if the endpoint is disabled.')
      .optional(),
    delivery: DeliveryStatus.optional(),
    reason: z
      .string()
      .max(63)
      .describe(
        'The value that `kubectl get` shows in the REASON column. If the subscription is admitted and not Live, this is the reason of Live. Otherwise, it is the reason of Ready.',
      )
      .optional(),
  })
  .describe('The observed state of the subscription.');
export type SubscriptionStatus = z.infer<typeof SubscriptionStatus>;

export const Subscription = defineKind({
  kind: 'Subscription',
  plural: 'subscriptions',
  shortNames: ['wsub'],
  scope: 'Namespaced',
  description:
    "A Subscription is a partner's request to receive one stream, with or without an endpoint. You must create it in the namespace of the receiving workspace. It takes effect when the producer's Integration grants access to this workspace.",
  spec: SubscriptionSpec,
  status: SubscriptionStatus,
  rules: [
    {
      // The transition rule does not apply if a user removes the endpoint and then adds it again, which is why the
      // version is stored in the status as well.
      rule: '!has(self.spec.endpoint) || self.spec.endpoint.?secretVersion.orValue(1) >= self.?status.?signing.?version.orValue(1)',
      message: 'secretVersion cannot be lower than status.signing.version',
      fieldPath: '.spec.endpoint.secretVersion',
    },
  ],
  columns: [
    { name: 'Producer', type: 'string', jsonPath: '.spec.producer', description: "The producer's workspace." },
    { name: 'Stream', type: 'string', jsonPath: '.spec.stream', description: 'The stream.' },
    conditionColumn('Live', 'Live', 'status', 'Whether events flow.'),
  ],
  reasonPath: '.status.reason',
  columnsBehind: [
    {
      name: 'Last Attempt',
      type: 'string',
      jsonPath: '.status.delivery.lastAttempt',
      description: 'The result of the last attempt.',
    },
    {
      name: 'Dead',
      type: 'boolean',
      jsonPath: '.status.delivery.deadLetters',
      description: 'Whether the inbox contains dead letters.',
    },
    {
      name: 'Backlog',
      type: 'string',
      jsonPath: '.status.delivery.backlog',
      description: 'The number of waiting events, as a power of ten.',
    },
  ],
});
export type Subscription = z.infer<typeof Subscription.schema>;
