import { z } from 'zod';
import { cloudEventHeaders } from '../../../core/events/cloudevent-headers.ts';
import type { EventMeta } from '../../../core/events/event-meta.ts';
import { EVENT_STATES, type EventProgress } from '../../../core/events/event-state.ts';
import { publicEventId } from '../../../core/ids/public-event-id.ts';
import type { HeldReason, NotRoutedReason } from '../../../core/routing/reasons.ts';
import type { PulledEvent } from '../../../plane/inbox-operations.ts';
import type { InspectedEvent, ListedEvent } from '../../../plane/inbox-reader.ts';
import { PATH_PARAMETERS, publicIdField, timeField } from '../../contract/fields.ts';

const described = {
  id: PATH_PARAMETERS.event,
  subscriptionPublicId: publicIdField('Subscription'),
  eventId: z
    .string()
    .nullable()
    .meta({ description: 'The event id specified by the producer. Included in deliveries as webhook-id.' }),
  type: z.string().nullable().meta({ description: "The event's type, if it has one." }),
  groupKey: z
    .string()
    .nullable()
    .meta({ description: "The event's group key. If the group key is no longer available, this is null." }),
  acceptedAt: timeField('The time at which ingress accepted the event'),
  bytes: z
    .int()
    .nullable()
    .meta({ description: 'The size of the body in bytes, or null if it is no longer available.' }),
};

const body = {
  contentType: z.string().nullable().meta({
    description: 'The content type sent by the producer, if any.',
  }),
  headers: z.record(z.string(), z.string()).meta({
    description:
      "The headers sent with a delivery, including the `ce-…` headers of a CloudEvent, and any headers forwarded from the producer's request. For structured events, and if the body is withheld, `ce-…` headers are not included.",
  }),
  body: z.string().nullable().meta({
    description:
      'The event body in the encoding specified by bodyEncoding, or null if the body is withheld or no longer available.',
  }),
  bodyEncoding: z.enum(['utf8', 'base64']).nullable().meta({
    description: 'The encoding used for the body: utf8 for text, or base64 (RFC 4648) for binary data.',
  }),
};

const progress = {
  state: z.enum(EVENT_STATES).meta({
    description:
      "The event's state. The state is pending until the first attempt (or the next attempt, if the event was recovered), inflight during an attempt, and retrying while waiting for the next attempt. All other states are final.",
  }),
  attempts: z.int().meta({
    description: 'The number of times delivery has been attempted so far, including attempts before a recovery.',
  }),
  nextAttemptAt: timeField('The time at which the next attempt is due').nullable(),
  endedAt: timeField('The time at which the delivery ended').nullable(),
  reason: z
    .string()
    .nullable()
    .meta({ description: 'The reason why the delivery ended, which is either an HTTP status or a reason code.' }),
};

const replayId = z
  .string()
  .nullable()
  .meta({ description: 'The replay that this delivery belongs to, or null for the first delivery.' });

export const EventEntry = z
  .object({
    ...described,
    tokens: z.int().nullable().meta({ description: 'The price of a replay, in tokens.' }),
    replayId,
    ...progress,
  })
  .meta({ id: 'InboxEvent' });

const Attempt = z
  .object({
    at: timeField('The time at which the attempt ended'),
    result: z.string().meta({ description: 'The HTTP status code, or a reason code if there was no response.' }),
    latencyMs: z.number().meta({ description: "The attempt's duration, in milliseconds." }),
  })
  .meta({ id: 'Attempt' });

const history = z.array(Attempt).meta({
  description:
    'A list of the most recent attempts, oldest first. If the event ended during an attempt, for example because you skipped the event, the attempt is added when its result is known.',
});

/** The reason for each permission that withholds the body. */
const WITHHELD = {
  PAUSED: 'paused',
  INACTIVE: 'not_activated',
  GONE: 'not_subscribed',
  PENDING: 'integration_pending',
  REVOKED: 'integration_closed',
  CLOSED: 'state_missing',
} as const satisfies Record<NonNullable<InspectedEvent['withheld']>, NotRoutedReason | HeldReason>;

const Delivery = z.object({
  replayId,
  ...progress,
  history,
});

export const EventDetail = EventEntry.extend({
  ...body,
  bodyWithheld: z.enum(WITHHELD).nullable().meta({
    description:
      'The reason why the body is withheld, or null if it is not. A body is withheld if the event has not been attempted and cannot be delivered at the moment. The reason can be paused if the subscription is blocked or suspended, not_activated if the group key is not active, not_subscribed if the subscription does not receive events, integration_pending, integration_closed, or state_missing if Sluice is restoring its state.',
  }),
  history,
  replays: z.array(Delivery).meta({
    description: 'A list of replays of this event, consisting of the 20 most recent replays and all open replays.',
  }),
  responses: z
    .array(
      z.object({
        replayId,
        attempt: z.int().meta({ description: 'The number of the attempt, starting from 1.' }),
        body: z
          .string()
          .meta({ description: 'The response body (up to 16 KiB), using the encoding specified in bodyEncoding.' }),
        bodyEncoding: z
          .enum(['utf8', 'base64'])
          .meta({ description: 'The encoding used for the body, either utf8 or base64.' }),
        truncated: z.boolean().meta({
          description:
            'Indicates whether the body is truncated, because the response was larger than 16 KiB or incomplete.',
        }),
      }),
    )
    .meta({ description: 'The responses to failed attempts, if they are still available.' }),
}).meta({ id: 'InboxEventDetail' });

export const PulledEntry = z.object({ ...described, replayId, ...body }).meta({ id: 'PulledEvent' });

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Encodes bytes for JSON: as text if they are valid UTF-8, as base64 otherwise. */
export function bodyText(bytes: Uint8Array): { readonly body: string; readonly bodyEncoding: 'utf8' | 'base64' } {
  try {
    return { body: decoder.decode(bytes), bodyEncoding: 'utf8' };
  } catch {
    return { body: Buffer.from(bytes).toString('base64'), bodyEncoding: 'base64' };
  }
}

const timeOf = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString());

function progressOf({ state, attempts, dueMs, endedMs, reason }: EventProgress) {
  const nextAttemptAt = timeOf(dueMs);
  return { state, attempts, nextAttemptAt, endedAt: timeOf(endedMs), reason: reason ?? null };
}

function historyOf({ history }: EventProgress): z.output<typeof Attempt>[] {
  return history.map(({ atMs, result, latencyMs }) => ({ at: new Date(atMs).toISOString(), result, latencyMs }));
}

type Described = Pick<ListedEvent, 'ref' | 'acceptedMs' | 'groupKey' | 'meta' | 'bytes' | 'tokens'>;

function describe(event: Described, subscription: string) {
  const { ref, meta } = event;
  return {
    id: publicEventId(ref, subscription),
    subscriptionPublicId: subscription,
    eventId: meta?.id ?? null,
    type: meta?.type ?? null,
    // Test events have an empty group key.
    groupKey: event.groupKey || null,
    acceptedAt: new Date(event.acceptedMs).toISOString(),
    bytes: event.bytes ?? null,
  };
}

function headersOf(meta: EventMeta): Record<string, string> {
  const flat = cloudEventHeaders(meta);
  const headers: Record<string, string> = {};
  for (let at = 0; at < flat.length; at += 2) headers[flat[at] as string] = flat[at + 1] as string;
  return { ...headers, ...meta.forward };
}

/** @param subscription is the public id `sub_…` */
export function eventEntry(event: ListedEvent, subscription: string): z.output<typeof EventEntry> {
  const { tokens = null, replayId: id = null } = event;
  return { ...describe(event, subscription), tokens, replayId: id, ...progressOf(event.progress) };
}

/** @param subscription is the public id `sub_…` */
export function eventDetail(event: InspectedEvent, subscription: string): z.output<typeof EventDetail> {
  const { meta, replays, responses, tokens = null } = event;
  return {
    ...describe(event, subscription),
    tokens,
    replayId: null,
    ...progressOf(event.progress),
    contentType: meta?.contentType ?? null,
    // The attributes could contain information about the body, so we need to withhold them as well.
    headers: meta === undefined || event.withheld !== undefined ? { ...meta?.forward } : headersOf(meta),
    ...(event.body === undefined ? { body: null, bodyEncoding: null } : bodyText(event.body)),
    bodyWithheld: event.withheld === undefined ? null : WITHHELD[event.withheld],
    history: historyOf(event.progress),
    replays: replays.map(each => ({ replayId: each.replayId, ...progressOf(each), history: historyOf(each) })),
    responses: responses.map(each => ({
      replayId: each.replayId ?? null,
      attempt: each.attempt,
      ...bodyText(each.body),
      truncated: each.truncated,
    })),
  };
}

/** @param subscription is the public id `sub_…` */
export function pulledEntry(event: PulledEvent, subscription: string): z.output<typeof PulledEntry> {
  const { meta, groupKey, ref, replayId: id = null } = event;
  const described = describe(
    { ref, meta, groupKey, acceptedMs: meta.time, bytes: event.body.length, tokens: undefined },
    subscription,
  );
  const { contentType = null } = meta;
  return { ...described, replayId: id, contentType, headers: headersOf(meta), ...bodyText(event.body) };
}
