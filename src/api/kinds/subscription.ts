import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { DeliveryStatus } from '../delivery-status.ts';
import { Endpoint } from '../endpoint.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName, timestamp } from '../strings.ts';

const rootKeyId = () =>
  z
    .string()
    .max(10)
    .regex(/^[A-Za-z0-9_-]{10}$/);

/**
 * Allows adding an id to a secret without an id. Uses `has` instead of `orValue` because comparing strings of unknown
 * length would exceed the cost limit of the API server.
 */
const isKept = (field: string) =>
  `(!has(oldSelf.status.signing.${field}) || (has(self.status.signing.${field}) && self.status.signing.${field} == oldSelf.status.signing.${field}))`;
const KEPT_KEYS = `!has(oldSelf.status) || !has(oldSelf.status.signing) || !has(oldSelf.status.signing.salt) || (has(self.status) && has(self.status.signing) && ((has(oldSelf.status.signing.version) && has(self.status.signing.version) && self.status.signing.version > oldSelf.status.signing.version) || (${isKept('key')} && ${isKept('previousKey')})))`;

export const SubscriptionSpec = withTransitions(
  z.object({
    producer: objectName().describe("The name of the producer's Workspace. Immutable."),
    integration: objectName().describe(
      "The metadata.name of the producer's Integration, which must specify this namespace as its spec.workspace. Immutable.",
    ),
    stream: objectName().describe("The metadata.name of the producer's CatalogStream. Immutable."),
    endpoint: Endpoint.optional(),
    ordering: z
      .enum(['ByGroupKey', 'None'])
      .default('ByGroupKey')
      .describe(
        'The order of deliveries. With ByGroupKey, an event waits until the previous event with the same group key is delivered, skipped, or dead. With None, events do not wait for each other. Defaults to ByGroupKey. Immutable.',
      ),
    suspended: z
      .boolean()
      .describe(
        'Set to true to pause the subscription. Events are kept until their retention period ends. Defaults to false.',
      )
      .optional(),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'Specifies what happens to the inbox when you delete the subscription. With both policies, all deliveries stop and nobody can read the inbox any more. With `Retain`, the producer can look up the state of each event until its retention period ends. `Delete` removes waiting events immediately. The producer can then only look up that they were routed. Defaults to Retain.',
      ),
  }),
  immutable('producer'),
  immutable('integration'),
  immutable('stream'),
  immutable('ordering'),
  {
    rule: '!has(oldSelf.endpoint) || !has(self.endpoint) || self.endpoint.?secretVersion.orValue(1) >= oldSelf.endpoint.?secretVersion.orValue(1)',
    message:
      'secretVersion cannot be decreased because an older secret might have been exposed: set it to the previous value or to a higher one',
    fieldPath: '.endpoint.secretVersion',
  },
).describe('Specifies which stream to receive and how to deliver its events.');
export type SubscriptionSpec = z.infer<typeof SubscriptionSpec>;

export const SubscriptionStatus = z
  .object({
    ...statusFields,
    admittedAt: timestamp()
      .describe(
        'The time (RFC 3339) at which the controller first observed the grant. Events accepted before this time are not routed.',
      )
      .optional(),
    signing: z
      .object({
        salt: z
          .string()
          .max(64)
          .regex(/^[A-Za-z0-9_-]{22,}$/)
          .describe(
            'The random part of all signing secrets. The controller writes it before the first delivery and never changes it. A Subscription that you recreate has another salt. Its secrets are different, too.',
          )
          .optional(),
        version: z
          .int()
          .min(1)
          .max(1_000_000)
          .meta({ format: 'int32' })
          .describe('The current version of the signing secret.')
          .optional(),
        key: rootKeyId()
          .describe(
            'The id of the root key used to derive this version of the secret. This id does not change until the next version. If the id is missing, the controller adds the id of the oldest root key.',
          )
          .optional(),
        previousKey: rootKeyId()
          .describe('The id of the root key used to derive the previous version. Defaults to the oldest root key.')
          .optional(),
        rotatedAt: timestamp()
          .describe(
            'The time (RFC 3339) at which this version was created. The previous version can be used for another 24 hours.',
          )
          .optional(),
      })
      .describe('The current state of the signing secret.')
      .optional(),
    endpoint: z
      .object({
        disabledAt: timestamp()
          .describe(
            'The time at which the endpoint was disabled, as RFC 3339 with milliseconds. To re-enable it, set spec.endpoint.enabledAt to a later time.',
          )
          .optional(),
        disabledBy: z
          .enum(['Gone', 'Failing'])
          .describe(
            'The reason why the endpoint was disabled: `Gone` if it returned status 410, or `Failing` if there were no successful deliveries for five days.',
          )
          .optional(),
      })
      .describe('The current state of the endpoint. This field is only present while the endpoint is disabled.')
      .optional(),
    delivery: DeliveryStatus.optional(),
    reason: z
      .string()
      .max(63)
      .describe(
        'The REASON shown by `kubectl get`. If the subscription is admitted but not Live, it is the reason of the Live condition. In all other cases, it is the reason of the Ready condition.',
      )
      .optional(),
  })
  .describe('The most recently observed status of the subscription.');
export type SubscriptionStatus = z.infer<typeof SubscriptionStatus>;

export const Subscription = defineKind({
  kind: 'Subscription',
  plural: 'subscriptions',
  shortNames: ['wsub'],
  scope: 'Namespaced',
  description:
    "Subscription lets a partner receive a stream, through an endpoint or by pulling events. Create it in the namespace of the receiving workspace. It takes effect when the producer's Integration grants access to this workspace.",
  spec: SubscriptionSpec,
  status: SubscriptionStatus,
  rules: [
    {
      // The transition rule does not apply if a user removes the endpoint and adds it again, so the version is stored
      // in the status as well.
      rule: '!has(self.spec.endpoint) || self.spec.endpoint.?secretVersion.orValue(1) >= self.?status.?signing.?version.orValue(1)',
      message:
        'secretVersion cannot be lower than status.signing.version because an older secret might have been exposed: set it to the value of status.signing.version or to a higher one',
      fieldPath: '.spec.endpoint.secretVersion',
    },
    {
      // Without this precondition, a controller that is no longer the leader could remove the salt with its last write.
      rule: '!has(oldSelf.status) || !has(oldSelf.status.signing) || !has(oldSelf.status.signing.salt) || (has(self.status) && has(self.status.signing) && has(self.status.signing.salt) && self.status.signing.salt == oldSelf.status.signing.salt)',
      message: 'status.signing.salt cannot be changed. To get another one, delete the Subscription and create it again',
      fieldPath: '.status.signing.salt',
    },
    {
      // Similarly, its last write could change the secrets used by the partner.
      rule: KEPT_KEYS,
      message: 'status.signing.key and previousKey can only be changed along with status.signing.version',
      fieldPath: '.status.signing.key',
    },
  ],
  columns: [
    { name: 'Producer', type: 'string', jsonPath: '.spec.producer', description: 'Workspace of the producer.' },
    { name: 'Stream', type: 'string', jsonPath: '.spec.stream', description: "The stream's name." },
    conditionColumn('Live', 'Live', 'status', 'Indicates whether events are flowing.'),
  ],
  reasonPath: '.status.reason',
  columnsBehind: [
    {
      name: 'Last Attempt',
      type: 'string',
      jsonPath: '.status.delivery.lastAttempt',
      description: 'The result of the most recent attempt.',
    },
    {
      name: 'Dead',
      type: 'boolean',
      jsonPath: '.status.delivery.deadLetters',
      description: 'Indicates whether there are any dead letters in the inbox.',
    },
    {
      name: 'Backlog',
      type: 'string',
      jsonPath: '.status.delivery.backlog',
      description: 'The approximate number of waiting events (power of ten).',
    },
  ],
});
export type Subscription = z.infer<typeof Subscription.schema>;
