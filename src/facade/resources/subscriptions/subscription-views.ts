import { z } from 'zod';
import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import { DeliveryStatus } from '../../../api/delivery-status.ts';
import { ENDPOINT_DEFAULTS, Endpoint, EndpointHeader } from '../../../api/endpoint.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';

const endpoint = Endpoint.shape;
const header = EndpointHeader.shape;
const namesOf = (headers: readonly { readonly name: string }[]) => headers.map(({ name }) => name.toLowerCase());

const value = header.value.unwrap();
const hidden = 'It can have up to 1,024 visible ASCII characters, spaces, and tabs. Responses never include it.';
const HeaderRequest = z.strictObject({
  name: header.name,
  value: value.meta({ description: `The value of the header. ${hidden}` }),
});
const HeaderChange = z.strictObject({
  name: header.name,
  value: value.optional().meta({
    description: `The value of the header. ${hidden} Omit to keep the stored value. This field is required if the origin of the URL changes.`,
  }),
});

function headersOf<H extends typeof HeaderRequest | typeof HeaderChange>(requested: H) {
  return z
    .array(requested)
    .max(16)
    .refine(
      headers => new Set(namesOf(headers)).size === headers.length,
      'contains the same header name more than once. Header names are not case-sensitive',
    )
    .optional()
    .meta({
      description:
        'Custom headers to send with every delivery, such as the authorization required by your endpoint. There can be at most 16 entries.',
    });
}

/** Endpoint as sent in a request. */
export const EndpointRequest = z
  .strictObject({
    url: endpoint.url.meta({ example: 'https://partner.example/hooks/orders' }),
    timeoutSeconds: endpoint.timeoutSeconds,
    maxPerSecond: endpoint.maxPerSecond,
    retrySchedule: endpoint.retrySchedule,
    headers: headersOf(HeaderRequest),
  })
  .meta({
    id: 'EndpointRequest',
    description: 'The receiving endpoint. If a field is omitted, its default value is used.',
  });
export type EndpointRequest = z.output<typeof EndpointRequest>;

/** Endpoint as sent in a request for an existing subscription. The result of `GET` can be sent back unchanged. */
export const EndpointChange = EndpointRequest.extend({
  maxPerSecond: endpoint.maxPerSecond.unwrap().nullable().optional().meta({
    description: 'The maximum number of attempts per second. If null or omitted, there is no limit.',
  }),
  headers: headersOf(HeaderChange),
}).meta({
  id: 'EndpointChange',
  description:
    'The complete endpoint. If a field is omitted, its default value is used. If a header is omitted, it is removed. If the value of a header is omitted, the stored value is kept.',
});
export type EndpointChange = z.output<typeof EndpointChange>;

const SubscribedEndpoint = z
  .object({
    url: z.string().meta({ description: 'The URL that receives deliveries as POST requests.' }),
    timeoutSeconds: z.int().meta({ description: 'The timeout for each attempt, in seconds.' }),
    maxPerSecond: z
      .int()
      .nullable()
      .meta({ description: 'The maximum number of attempts per second, or null if there is no limit.' }),
    retrySchedule: z.array(z.string()).meta({ description: 'The delays between failed attempts and their retries.' }),
    headers: z
      .array(z.object({ name: z.string().meta({ description: 'The name of the header.' }) }))
      .meta({ description: 'The custom headers sent with every delivery, without their values.' }),
  })
  .meta({ id: 'SubscribedEndpoint' });

const STATUSES = ['Pending', 'Live', 'Paused', 'Closed'] as const;

export const SubscriptionEntry = z
  .object({
    publicId: publicIdField('Subscription'),
    integrationPublicId: publicIdField('Integration'),
    catalogEntryPublicId: publicIdField('CatalogStream'),
    key: z.string().meta({ description: 'The key of the stream.', example: 'orders' }),
    endpoint: SubscribedEndpoint.nullable().meta({
      description: 'The endpoint of the subscription, or null if events are pulled.',
    }),
    ordering: z.enum(['ByGroupKey', 'None']).meta({
      description:
        'The order of deliveries. With ByGroupKey, events wait for earlier events with the same group key. With None, events do not wait for each other.',
    }),
    suspended: z.boolean().meta({ description: 'Indicates whether you have paused the subscription.' }),
    status: z.enum(STATUSES).meta({
      description:
        "The subscription's status. Live means that events are flowing. Paused means that events are kept because of `reason`. Pending means that the subscription is not admitted yet. Closed means that the integration has ended.",
    }),
    reason: z.string().meta({
      description:
        'The reason for the current status. Can be one of Live, Blocked, Suspended, EndpointDisabled, EndpointRefused, WaitingForSecret, HeaderNotReadable, SigningKeyMissing, SpecRefused, WaitingForConsent, InsufficientTokens, or IntegrationClosed. For a pending subscription, this is the reason why it is pending.',
      example: 'Live',
    }),
    message: z.string().meta({ description: 'A human-readable description of the reason.' }),
    endpointWarning: z.string().nullable().meta({
      description:
        'Details about endpoint failures, including the time of the first failure and the time at which the endpoint will be disabled. Null unless the endpoint has had no successful attempt for a whole day.',
    }),
    lastAttempt: DeliveryStatus.shape.lastAttempt.unwrap().nullable().meta({
      description:
        'The result of the most recent attempt, or null if there was none. Succeeded means a status from 200 to 299. The value may be delayed if many endpoints change at the same time. To get the responses of your endpoint, retrieve an event that is retried (state=retrying).',
      example: 'Succeeded',
    }),
    lastAttemptSince: z.string().nullable().meta({
      format: 'date-time',
      description: 'The time (RFC 3339) of the first attempt that had this result, or null if there was none.',
    }),
    createdAt: z
      .string()
      .nullable()
      .meta({ format: 'date-time', description: 'The time (RFC 3339) at which the subscription was created.' }),
  })
  .meta({ id: 'Subscription' });

type Subscription = Pick<Cached<'Subscription'>, 'metadata' | 'spec' | 'status'>;
type Status = Pick<z.output<typeof SubscriptionEntry>, 'status' | 'reason' | 'message'>;

const live = REASON.Subscription.Live;

/** Returns a subscription's status. @param closed is true if the integration has ended */
export function subscriptionStatus({ status }: Pick<Subscription, 'status'>, closed: boolean): Status {
  if (closed) return { status: 'Closed', reason: 'IntegrationClosed', message: 'the integration has ended' };
  const conditionOf = (type: string) => status?.conditions?.find(condition => condition.type === type);
  const flows = conditionOf(CONDITION.Subscription.Live);
  if (flows === undefined)
    return {
      status: 'Pending',
      reason: 'Progressing',
      message: 'the controller has not processed the subscription yet',
    };
  const { reason, message } = flows;
  if (flows.status === 'True') return { status: 'Live', reason, message };
  if (reason !== live.NotAdmitted) return { status: 'Paused', reason, message };
  const ready = conditionOf(CONDITION.Subscription.Ready) ?? flows;
  return { status: 'Pending', reason: ready.reason, message: ready.message };
}

function endpointWarning({ status }: Subscription): string | null {
  const failing = status?.conditions?.find(({ type }) => type === CONDITION.Subscription.EndpointFailing);
  return failing?.status === 'True' ? failing.message : null;
}

/** Returns a subscription as shown to its owner. @param closed is true if the integration has ended */
export function subscriptionEntry(subscription: Subscription, closed: boolean): z.output<typeof SubscriptionEntry> {
  const { metadata, spec, status } = subscription;
  const { url, timeoutSeconds, maxPerSecond, retrySchedule, headers = [] } = spec.endpoint ?? {};
  return {
    publicId: publicId('Subscription', metadata.namespace ?? '', metadata.name),
    integrationPublicId: publicId('Integration', spec.producer, spec.integration),
    catalogEntryPublicId: publicId('CatalogStream', spec.producer, spec.stream),
    key: spec.stream,
    endpoint:
      url === undefined
        ? null
        : {
            url,
            timeoutSeconds: timeoutSeconds ?? ENDPOINT_DEFAULTS.timeoutSeconds,
            maxPerSecond: maxPerSecond ?? null,
            retrySchedule: [...(retrySchedule ?? ENDPOINT_DEFAULTS.retrySchedule)],
            headers: headers.map(({ name }) => ({ name })),
          },
    ordering: spec.ordering,
    suspended: spec.suspended === true,
    ...subscriptionStatus(subscription, closed),
    endpointWarning: endpointWarning(subscription),
    lastAttempt: status?.delivery?.lastAttempt ?? null,
    lastAttemptSince: status?.delivery?.lastAttemptSince ?? null,
    createdAt: metadata.creationTimestamp ?? null,
  };
}
