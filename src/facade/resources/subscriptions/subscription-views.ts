import { z } from 'zod';
import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import { ENDPOINT_DEFAULTS, Endpoint, EndpointHeader } from '../../../api/endpoint.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { publicIdField } from '../../contract/fields.ts';
import type { Cached } from '../../objects/cached.ts';

const endpoint = Endpoint.shape;
const header = EndpointHeader.shape;
const namesOf = (headers: readonly { readonly name: string }[]) => headers.map(({ name }) => name.toLowerCase());

const value = header.value.unwrap();
const hidden =
  'The value can contain visible ASCII characters and spaces, with at most 1,024 characters. It is not included in responses.';
const HeaderRequest = z.strictObject({
  name: header.name,
  value: value.meta({ description: `The value of the header. ${hidden}` }),
});
const HeaderChange = z.strictObject({
  name: header.name,
  value: value
    .optional()
    .meta({ description: `The value of the header. ${hidden} If this field is not set, the stored value is kept.` }),
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
        'The headers that are sent with every delivery, with at most 16 entries. For example, you can set the authorization that your endpoint requires.',
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
    description: 'The endpoint that receives the events. Fields that are not set use their defaults.',
  });
export type EndpointRequest = z.output<typeof EndpointRequest>;

/** Endpoint as sent in a request for an existing subscription. The result of `GET` can be sent back unchanged. */
export const EndpointChange = EndpointRequest.extend({
  maxPerSecond: endpoint.maxPerSecond.unwrap().nullable().optional().meta({
    description: 'The maximum number of attempts per second. If this field is null or not set, there is no limit.',
  }),
  headers: headersOf(HeaderChange),
}).meta({
  id: 'EndpointChange',
  description:
    'The complete endpoint. Fields that are not set use their defaults, and headers that are not included are removed. If a header does not have a value, the stored value is kept.',
});
export type EndpointChange = z.output<typeof EndpointChange>;

const SubscribedEndpoint = z
  .object({
    url: z.string().meta({ description: 'The URL that receives deliveries as POST requests.' }),
    timeoutSeconds: z.int().meta({ description: 'The timeout of an attempt in seconds.' }),
    maxPerSecond: z
      .int()
      .nullable()
      .meta({ description: 'The maximum number of attempts per second. If the value is null, there is no limit.' }),
    retrySchedule: z.array(z.string()).meta({ description: 'The delays after failed attempts.' }),
    headers: z
      .array(z.object({ name: z.string().meta({ description: 'The name of the header.' }) }))
      .meta({ description: 'The headers of every delivery, without their values.' }),
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
      description: 'The endpoint. If the value is null, you pull the events.',
    }),
    ordering: z.enum(['ByGroupKey', 'None']).meta({
      description:
        'The order of deliveries. With ByGroupKey, events wait for earlier events of the same group key. With None, events do not wait.',
    }),
    suspended: z.boolean().meta({ description: 'Whether you paused the subscription.' }),
    status: z.enum(STATUSES).meta({
      description:
        'The status of the subscription. The value is Live if events flow, and Paused if events are kept because of `reason`. The value is Pending if the subscription is not admitted yet, and Closed if the integration has ended.',
    }),
    reason: z.string().meta({
      description:
        'The reason of the status. The value is Live, Blocked, Suspended, EndpointDisabled, EndpointRefused, WaitingForSecret, InsufficientTokens, IntegrationClosed, or the reason why the subscription is pending.',
      example: 'Live',
    }),
    message: z.string().meta({ description: 'A human-readable description of the reason.' }),
    endpointWarning: z.string().nullable().meta({
      description:
        'The failures of the endpoint, which are shown after one day without a successful attempt. They contain the time of the first failure and the time when Sluice will disable the endpoint. Otherwise, the value is null.',
    }),
    createdAt: z
      .string()
      .nullable()
      .meta({ format: 'date-time', description: 'The time (RFC 3339) when the subscription was created.' }),
  })
  .meta({ id: 'Subscription' });

type Subscription = Pick<Cached<'Subscription'>, 'metadata' | 'spec' | 'status'>;
type Status = Pick<z.output<typeof SubscriptionEntry>, 'status' | 'reason' | 'message'>;

const live = REASON.Subscription.Live;

/** Returns the status of a subscription. @param closed is true if the integration has ended */
export function subscriptionStatus({ status }: Pick<Subscription, 'status'>, closed: boolean): Status {
  if (closed) return { status: 'Closed', reason: live.IntegrationClosed, message: 'the integration has ended' };
  const said = (type: string) => status?.conditions?.find(condition => condition.type === type);
  const flows = said(CONDITION.Subscription.Live);
  if (flows === undefined)
    return {
      status: 'Pending',
      reason: 'Progressing',
      message: 'the controller has not processed the subscription yet',
    };
  const { reason, message } = flows;
  if (flows.status === 'True') return { status: 'Live', reason, message };
  if (reason === live.IntegrationClosed) return { status: 'Closed', reason, message };
  if (reason !== live.NotAdmitted) return { status: 'Paused', reason, message };
  const ready = said(CONDITION.Subscription.Ready) ?? flows;
  return { status: 'Pending', reason: ready.reason, message: ready.message };
}

function endpointWarning({ status }: Subscription): string | null {
  const failing = status?.conditions?.find(({ type }) => type === CONDITION.Subscription.EndpointFailing);
  return failing?.status === 'True' ? failing.message : null;
}

/** Returns a subscription as shown to its owner. @param closed is true if the integration has ended */
export function subscriptionEntry(subscription: Subscription, closed: boolean): z.output<typeof SubscriptionEntry> {
  const { metadata, spec } = subscription;
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
    createdAt: metadata.creationTimestamp ?? null,
  };
}
