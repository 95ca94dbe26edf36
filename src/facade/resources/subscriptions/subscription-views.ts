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
const hidden = 'visible ASCII and spaces, at most 1,024 characters. No answer shows it.';
const HeaderRequest = z.strictObject({
  name: header.name,
  value: value.meta({ description: `Value: ${hidden}` }),
});
const HeaderChange = z.strictObject({
  name: header.name,
  value: value.optional().meta({ description: `Value: ${hidden} Absent: the stored value is kept.` }),
});

function headersOf<H extends typeof HeaderRequest | typeof HeaderChange>(requested: H) {
  return z
    .array(requested)
    .max(16)
    .refine(
      headers => new Set(namesOf(headers)).size === headers.length,
      'each header may be named once; names are case-insensitive',
    )
    .optional()
    .meta({
      description: 'Headers to send with every delivery, at most 16. For example the authorization of the endpoint.',
    });
}

/** An endpoint as a caller requests it. */
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
    description: 'The endpoint that receives the events. Absent fields take their defaults.',
  });
export type EndpointRequest = z.output<typeof EndpointRequest>;

/** The same for an endpoint that may exist. It accepts what `GET` returns, unchanged. */
export const EndpointChange = EndpointRequest.extend({
  maxPerSecond: endpoint.maxPerSecond
    .unwrap()
    .nullable()
    .optional()
    .meta({ description: 'Maximum attempts started per second. Absent or null: no limit.' }),
  headers: headersOf(HeaderChange),
}).meta({
  id: 'EndpointChange',
  description:
    'The complete endpoint. Absent fields take their defaults, so absent headers are removed. A header without a value keeps its stored value.',
});
export type EndpointChange = z.output<typeof EndpointChange>;

const SubscribedEndpoint = z
  .object({
    url: z.string().meta({ description: 'URL that receives the deliveries (POST).' }),
    timeoutSeconds: z.int().meta({ description: 'Seconds until an attempt fails.' }),
    maxPerSecond: z.int().nullable().meta({ description: 'Maximum attempts started per second; null: no limit.' }),
    retrySchedule: z.array(z.string()).meta({ description: 'Delays between a failed attempt and the next one.' }),
    headers: z
      .array(z.object({ name: z.string().meta({ description: 'Name of the header.' }) }))
      .meta({ description: 'Headers of every delivery, without their values.' }),
  })
  .meta({ id: 'SubscribedEndpoint' });

const STATUSES = ['Pending', 'Live', 'Paused', 'Closed'] as const;

export const SubscriptionEntry = z
  .object({
    publicId: publicIdField('Subscription'),
    integrationPublicId: publicIdField('Integration'),
    catalogEntryPublicId: publicIdField('CatalogStream'),
    key: z.string().meta({ description: 'Key of the stream.', example: 'orders' }),
    endpoint: SubscribedEndpoint.nullable().meta({ description: 'The endpoint; null: you pull the events.' }),
    ordering: z
      .enum(['ByGroupKey', 'None'])
      .meta({ description: 'ByGroupKey: later events of a group key wait for earlier ones. None: no event waits.' }),
    suspended: z.boolean().meta({ description: 'Whether you paused the subscription.' }),
    status: z.enum(STATUSES).meta({
      description:
        'Live: events flow. Paused: events are kept; `reason` has the cause. Pending: not admitted yet. Closed: the integration has ended.',
    }),
    reason: z.string().meta({
      description:
        'Reason of the status: Live, Blocked, Suspended, EndpointDisabled, EndpointRefused, WaitingForSecret, InsufficientTokens, IntegrationClosed, or what a Pending one waits for.',
      example: 'Live',
    }),
    message: z.string().meta({ description: 'The reason as a sentence.' }),
    endpointWarning: z.string().nullable().meta({
      description:
        'After a day without a successful attempt: when the failures began, and when Sluice will disable the endpoint. Else null.',
    }),
    createdAt: z.string().nullable().meta({ format: 'date-time', description: 'When it was created (RFC 3339).' }),
  })
  .meta({ id: 'Subscription' });

type Subscription = Pick<Cached<'Subscription'>, 'metadata' | 'spec' | 'status'>;
type Status = Pick<z.output<typeof SubscriptionEntry>, 'status' | 'reason' | 'message'>;

const live = REASON.Subscription.Live;

/** Returns the status of a subscription. @param closed whether its integration has ended */
export function subscriptionStatus({ status }: Pick<Subscription, 'status'>, closed: boolean): Status {
  if (closed) return { status: 'Closed', reason: live.IntegrationClosed, message: 'the integration has ended' };
  const said = (type: string) => status?.conditions?.find(condition => condition.type === type);
  const flows = said(CONDITION.Subscription.Live);
  if (flows === undefined)
    return { status: 'Pending', reason: 'Progressing', message: 'the controller has not handled the subscription yet' };
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

/** Returns a subscription as its owner sees it. @param closed whether its integration has ended */
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
