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
 * Permits an id to be added to a secret that has none. Comparing strings of unknown length would cost more than the API
 * server allows, hence `has` instead of `orValue`.
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
        'Delivery order. With ByGroupKey, each event has to wait for the previous event with the same group key to be delivered, skipped, or dead; with None, there is no waiting. Defaults to ByGroupKey. Immutable.',
      ),
    suspended: z
      .boolean()
      .describe(
        'Set to true to pause routing to this subscription. Until then, events will be kept, but only until the end of their retention period. Defaults to false.',
      )
      .optional(),
    deletionPolicy: z
      .enum(['Retain', 'Delete'])
      .default('Retain')
      .describe(
        'Specifies what to do with the inbox when the subscription is deleted. If this is set to `Retain`, all deliveries will be stopped, but the records can be read until the end of the retention period. If this is set to `Delete`, the inbox will be removed immediately. Defaults to Retain.',
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
).describe('Specifies which stream to receive, and how to deliver its events.');
export type SubscriptionSpec = z.infer<typeof SubscriptionSpec>;

export const SubscriptionStatus = z
  .object({
    ...statusFields,
    admittedAt: timestamp()
      .describe(
        'The time (RFC 3339) at which the controller first observed the grant. Events that were accepted before this time will not be routed.',
      )
      .optional(),
    signing: z
      .object({
        salt: z
          .string()
          .max(64)
          .regex(/^[A-Za-z0-9_-]{22,}$/)
          .describe(
            'Random part of all signing secrets. It is written once by the controller before the first delivery, and it will never be changed. If a Subscription is created again, it will get another salt, and therefore other secrets.',
          )
          .optional(),
        version: z
          .int()
          .min(1)
          .max(1_000_000)
          .meta({ format: 'int32' })
          .describe('Current signing secret version.')
          .optional(),
        key: rootKeyId()
          .describe(
            'Id of the root key that this version of the secret is derived from, which does not change until the next version. If it is missing, the controller adds the id of the oldest root key.',
          )
          .optional(),
        previousKey: rootKeyId()
          .describe('Id of the root key that the previous version is derived from. Defaults to the oldest root key.')
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
            'The time at which the endpoint was disabled, as RFC 3339 with milliseconds. To enable it again, set spec.endpoint.enabledAt to a later time.',
          )
          .optional(),
        disabledBy: z
          .enum(['Gone', 'Failing'])
          .describe(
            'Why the endpoint was disabled: `Gone` if it returned status 410, or `Failing` if there were no successful deliveries for five days.',
          )
          .optional(),
      })
      .describe('The current state of the endpoint. This is only present while the endpoint is disabled.')
      .optional(),
    delivery: DeliveryStatus.optional(),
    reason: z
      .string()
      .max(63)
      .describe(
        'This is shown as REASON by `kubectl get`. Taken from the Live condition for subscriptions that have been admitted but are not Live, and from the Ready condition in all other cases.',
      )
      .optional(),
  })
  .describe('Most recently observed status of the subscription.');
export type SubscriptionStatus = z.infer<typeof SubscriptionStatus>;

export const Subscription = defineKind({
  kind: 'Subscription',
  plural: 'subscriptions',
  shortNames: ['wsub'],
  scope: 'Namespaced',
  description:
    "Subscription represents a request by a partner to receive a single stream, either through an endpoint or by pulling events. It must be created in the namespace of the receiving workspace, and will take effect once this workspace has been granted access by the producer's Integration.",
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
    {
      // Without this precondition, a controller that is no longer the leader could remove the salt when it writes for
      // the last time.
      rule: '!has(oldSelf.status) || !has(oldSelf.status.signing) || !has(oldSelf.status.signing.salt) || (has(self.status) && has(self.status.signing) && has(self.status.signing.salt) && self.status.signing.salt == oldSelf.status.signing.salt)',
      message: 'status.signing.salt cannot be changed. To get another one, delete the Subscription and create it again',
      fieldPath: '.status.signing.salt',
    },
    {
      // Likewise, its last write could change the secrets that the partner knows.
      rule: KEPT_KEYS,
      message: 'status.signing.key and previousKey can only be changed along with status.signing.version',
      fieldPath: '.status.signing.key',
    },
  ],
  columns: [
    { name: 'Producer', type: 'string', jsonPath: '.spec.producer', description: 'Workspace of the producer.' },
    { name: 'Stream', type: 'string', jsonPath: '.spec.stream', description: 'The name of the stream.' },
    conditionColumn('Live', 'Live', 'status', 'Whether events are flowing.'),
  ],
  reasonPath: '.status.reason',
  columnsBehind: [
    {
      name: 'Last Attempt',
      type: 'string',
      jsonPath: '.status.delivery.lastAttempt',
      description: 'Result of the most recent attempt.',
    },
    {
      name: 'Dead',
      type: 'boolean',
      jsonPath: '.status.delivery.deadLetters',
      description: 'Whether there are any dead letters in the inbox.',
    },
    {
      name: 'Backlog',
      type: 'string',
      jsonPath: '.status.delivery.backlog',
      description: 'Approximate number of waiting events (power of ten).',
    },
  ],
});
export type Subscription = z.infer<typeof Subscription.schema>;
