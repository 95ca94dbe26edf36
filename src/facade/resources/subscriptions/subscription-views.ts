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
const hidden = 'visible ASCII and spaces, at most 1,024 characters. It is not shown again.';
const HeaderWish = z.strictObject({
  name: header.name,
  value: value.meta({ description: `Value: ${hidden}` }),
});
const HeaderChange = z.strictObject({
  name: header.name,
  value: value.optional().meta({ description: `Value: ${hidden} Absent: the stored value stays.` }),
});

function headersOf<H extends typeof HeaderWish | typeof HeaderChange>(wish: H) {
  return z
    .array(wish)
    .max(16)
    .refine(headers => new Set(namesOf(headers)).size === headers.length, 'each header may be named once, in any case')
    .optional()
    .meta({
      description: 'Headers that every delivery carries, at most 16, such as the authorization of the endpoint.',
    });
}

/** Where events are to be sent to, as a caller says it. */
export const EndpointWish = z
  .strictObject({
    url: endpoint.url.meta({ example: 'https://partner.example/hooks/orders' }),
    timeoutSeconds: endpoint.timeoutSeconds,
    maxPerSecond: endpoint.maxPerSecond,
    retrySchedule: endpoint.retrySchedule,
    headers: headersOf(HeaderWish),
  })
  .meta({ id: 'EndpointWish', description: 'Where events are delivered to. What is absent has its default.' });
export type EndpointWish = z.output<typeof EndpointWish>;

/** The same for an endpoint that may be there: what `GET` answers is taken back as it is. */
export const EndpointChange = EndpointWish.extend({
  maxPerSecond: endpoint.maxPerSecond
    .unwrap()
    .nullable()
    .optional()
    .meta({ description: 'Most attempts started in a second. Absent or null: no limit.' }),
  headers: headersOf(HeaderChange),
}).meta({
  id: 'EndpointChange',
  description:
    'Where events are delivered to, as a whole. What is absent has its default: headers that are absent are removed, and a header without a value keeps the stored one.',
});
export type EndpointChange = z.output<typeof EndpointChange>;

const SubscribedEndpoint = z
  .object({
    url: z.string().meta({ description: 'URL that deliveries are posted to.' }),
    timeoutSeconds: z.int().meta({ description: 'Seconds until an attempt has failed.' }),
    maxPerSecond: z.int().nullable().meta({ description: 'Most attempts started in a second; null: no limit.' }),
    retrySchedule: z.array(z.string()).meta({ description: 'Delays after failed attempts.' }),
    headers: z
      .array(z.object({ name: z.string().meta({ description: 'Name of the header.' }) }))
      .meta({ description: 'Headers that every delivery carries; their values are not shown.' }),
  })
  .meta({ id: 'SubscribedEndpoint' });

const STATUSES = ['Pending', 'Live', 'Paused', 'Closed'] as const;

export const SubscriptionEntry = z
  .object({
    publicId: publicIdField('Subscription'),
    integrationPublicId: publicIdField('Integration'),
    catalogEntryPublicId: publicIdField('CatalogStream'),
    key: z.string().meta({ description: 'Key of the stream.', example: 'orders' }),
    endpoint: SubscribedEndpoint.nullable().meta({ description: 'null: nothing is sent; events are pulled.' }),
    ordering: z.enum(['ByGroupKey', 'None']).meta({ description: 'Whether later events of a group key wait.' }),
    suspended: z.boolean().meta({ description: 'Whether you have paused it.' }),
    status: z.enum(STATUSES).meta({
      description:
        'Live: events flow. Paused: they are kept, reason says why. Pending: not admitted yet. Closed: the integration has ended.',
    }),
    reason: z.string().meta({
      description:
        'Why, in one word: Live, Blocked, Suspended, EndpointDisabled, EndpointRefused, WaitingForSecret, InsufficientTokens, IntegrationClosed, or what it waits for.',
      example: 'Live',
    }),
    message: z.string().meta({ description: 'Why, for people.' }),
    endpointWarning: z.string().nullable().meta({
      description:
        'After a day without a successful attempt: since when, and when the endpoint will be disabled. Else null.',
    }),
    createdAt: z.string().nullable().meta({ format: 'date-time', description: 'When it was made (RFC 3339).' }),
  })
  .meta({ id: 'Subscription' });

type Subscription = Pick<Cached<'Subscription'>, 'metadata' | 'spec' | 'status'>;
type Status = Pick<z.output<typeof SubscriptionEntry>, 'status' | 'reason' | 'message'>;

const live = REASON.Subscription.Live;

/** How a subscription stands. @param closed whether its integration has ended */
export function subscriptionStatus({ status }: Pick<Subscription, 'status'>, closed: boolean): Status {
  if (closed) return { status: 'Closed', reason: live.IntegrationClosed, message: 'the integration has ended' };
  const said = (type: string) => status?.conditions?.find(condition => condition.type === type);
  const flows = said(CONDITION.Subscription.Live);
  if (flows === undefined) return { status: 'Pending', reason: 'Progressing', message: 'it was made a moment ago' };
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

/** A subscription as its owner sees it. @param closed whether its integration has ended */
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
