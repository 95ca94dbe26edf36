import { z } from 'zod';
import { cloudEventHeaders } from '../../../core/events/cloudevent-headers.ts';
import type { EventMeta } from '../../../core/events/event-meta.ts';
import { EVENT_STATES, type EventProgress } from '../../../core/events/event-state.ts';
import { publicEventId } from '../../../core/ids/public-event-id.ts';
import type { PulledEvent } from '../../../redis/inbox-operations.ts';
import type { InspectedEvent, ListedEvent } from '../../../redis/inbox-reader.ts';
import { PATH_PARAMETERS, publicIdField } from '../../contract/fields.ts';

const time = (description: string) =>
  z
    .string()
    .meta({ format: 'date-time', description: `${description} (RFC 3339).`, example: '2026-01-31T12:00:00.000Z' });

const described = {
  id: PATH_PARAMETERS.event,
  subscriptionPublicId: publicIdField('Subscription'),
  eventId: z
    .string()
    .nullable()
    .meta({ description: 'The id that the producer set for the event. Deliveries contain it in webhook-id.' }),
  type: z
    .string()
    .nullable()
    .meta({ description: 'The event type. The value is null if the event does not have a type.' }),
  groupKey: z
    .string()
    .nullable()
    .meta({ description: 'The group key. The value is null if it is no longer available.' }),
  acceptedAt: time('The time when ingress accepted the event'),
  bytes: z
    .int()
    .nullable()
    .meta({ description: 'The size of the body in bytes. The value is null if it is no longer available.' }),
};

const body = {
  contentType: z.string().nullable().meta({
    description: 'The content type that the producer sent. The value is null if the producer did not send one.',
  }),
  headers: z.record(z.string(), z.string()).meta({
    description:
      "The headers of a delivery. They contain the `ce-…` headers of the CloudEvent and the headers of the producer's request that Sluice forwards. There are no `ce-…` headers if the event is structured or if its body is hidden.",
  }),
  body: z.string().nullable().meta({
    description:
      'The body in the format of bodyEncoding. The value is null if the body is no longer available or is hidden.',
  }),
  bodyEncoding: z.enum(['utf8', 'base64']).nullable().meta({
    description: 'The encoding of the body. The value is utf8 for text and base64 (RFC 4648) for binary data.',
  }),
};

const progress = {
  state: z.enum(EVENT_STATES).meta({
    description:
      'The state of the event. The value is pending before the first attempt, inflight during an attempt, and retrying before the next attempt. All other states are final.',
  }),
  attempts: z.int().meta({ description: 'The number of attempts that were made.' }),
  nextAttemptAt: time('The time of the next attempt').nullable(),
  endedAt: time('The time when the delivery ended').nullable(),
  reason: z
    .string()
    .nullable()
    .meta({ description: 'The reason why the delivery ended, which is an HTTP status or a reason code.' }),
};

const replayId = z
  .string()
  .nullable()
  .meta({ description: 'The id of the replay. The value is null for the first delivery.' });

export const EventEntry = z
  .object({
    ...described,
    tokens: z.int().nullable().meta({ description: 'The price of a replay in tokens.' }),
    replayId,
    ...progress,
  })
  .meta({ id: 'InboxEvent' });

const Attempt = z
  .object({
    at: time('The time when the delivery ended'),
    result: z.string().meta({ description: 'The HTTP status, or a reason code if there was no response.' }),
    latencyMs: z.number().meta({ description: 'The duration in milliseconds.' }),
  })
  .meta({ id: 'Attempt' });

const Delivery = z.object({
  replayId,
  ...progress,
  history: z.array(Attempt).meta({ description: 'The last attempts, with the oldest attempt first.' }),
});

export const EventDetail = EventEntry.extend({
  ...body,
  bodyWithheld: z.string().nullable().meta({
    description:
      'The reason code if the body is hidden because the event was not delivered and cannot be delivered now. Otherwise, the value is null.',
  }),
  history: z.array(Attempt).meta({ description: 'The last attempts, with the oldest attempt first.' }),
  replays: z
    .array(Delivery)
    .meta({ description: 'The replays of the event. The list contains the last 20 replays and all open replays.' }),
  responses: z
    .array(
      z.object({
        replayId,
        attempt: z.int().meta({ description: 'The number of the attempt, starting with 1.' }),
        body: z
          .string()
          .meta({ description: 'The body of the response in the format of bodyEncoding, with at most 16 KiB.' }),
        bodyEncoding: z
          .enum(['utf8', 'base64'])
          .meta({ description: 'The encoding of the body, either utf8 or base64.' }),
        truncated: z.boolean().meta({ description: 'Whether the response was longer or incomplete.' }),
      }),
    )
    .meta({ description: 'The responses to failed attempts that are still available.' }),
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
    // Attributes could reveal the content of the body, so withhold them as well.
    headers: meta === undefined || event.withheld !== undefined ? { ...meta?.forward } : headersOf(meta),
    ...(event.body === undefined ? { body: null, bodyEncoding: null } : bodyText(event.body)),
    bodyWithheld: event.withheld ?? null,
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
