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
    .meta({ description: "The producer's id of the event. Deliveries send it as webhook-id." }),
  type: z.string().nullable().meta({ description: 'Event type; null if it has none.' }),
  groupKey: z.string().nullable().meta({ description: 'Group key; null if it is no longer known.' }),
  acceptedAt: time('When ingress accepted it'),
  bytes: z.int().nullable().meta({ description: 'Size of the body in bytes; null if it is no longer known.' }),
};

const body = {
  contentType: z.string().nullable().meta({ description: 'Content type as the producer sent it, or null.' }),
  headers: z.record(z.string(), z.string()).meta({
    description:
      "Headers of a delivery: the `ce-…` headers of the CloudEvent (none if it is structured or its body is withheld), and the headers of the producer's request that Sluice passes on.",
  }),
  body: z
    .string()
    .nullable()
    .meta({ description: 'The body in bodyEncoding; null if it is no longer kept or not shown.' }),
  bodyEncoding: z
    .enum(['utf8', 'base64'])
    .nullable()
    .meta({ description: 'utf8: the body is text. base64 (RFC 4648): the body is binary.' }),
};

const progress = {
  state: z.enum(EVENT_STATES).meta({
    description:
      'pending: waits for its first attempt. inflight: an attempt is running. retrying: waits for the next attempt. All others are final.',
  }),
  attempts: z.int().meta({ description: 'Number of attempts so far.' }),
  nextAttemptAt: time('When the next attempt is due').nullable(),
  endedAt: time('When it ended').nullable(),
  reason: z.string().nullable().meta({ description: 'Why it ended: an HTTP status or a reason code.' }),
};

const replayId = z.string().nullable().meta({ description: 'Id of the replay; null for the first delivery.' });

export const EventEntry = z
  .object({
    ...described,
    tokens: z.int().nullable().meta({ description: 'Price of a replay in tokens.' }),
    replayId,
    ...progress,
  })
  .meta({ id: 'InboxEvent' });

const Attempt = z
  .object({
    at: time('When it ended'),
    result: z.string().meta({ description: 'HTTP status, or a reason code if there was no answer.' }),
    latencyMs: z.number().meta({ description: 'Duration in milliseconds.' }),
  })
  .meta({ id: 'Attempt' });

const Delivery = z.object({
  replayId,
  ...progress,
  history: z.array(Attempt).meta({ description: 'The last attempts, oldest first.' }),
});

export const EventDetail = EventEntry.extend({
  ...body,
  bodyWithheld: z.string().nullable().meta({
    description:
      'Reason code if the body is hidden: it was not delivered yet, and may not be delivered now. Else null.',
  }),
  history: z.array(Attempt).meta({ description: 'The last attempts, oldest first.' }),
  replays: z.array(Delivery).meta({ description: 'Replays of the event: the last 20, and all open ones.' }),
  responses: z
    .array(
      z.object({
        replayId,
        attempt: z.int().meta({ description: 'Number of the attempt, from 1.' }),
        body: z.string().meta({ description: 'Body of the answer, at most 16 KiB, in bodyEncoding.' }),
        bodyEncoding: z.enum(['utf8', 'base64']).meta({ description: 'utf8 or base64.' }),
        truncated: z.boolean().meta({ description: 'Whether the answer was longer or incomplete.' }),
      }),
    )
    .meta({ description: 'Answers to failed attempts, as far as they are still kept.' }),
}).meta({ id: 'InboxEventDetail' });

export const PulledEntry = z.object({ ...described, replayId, ...body }).meta({ id: 'PulledEvent' });

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Encodes bytes for JSON: as text if they are valid UTF-8, else as base64. */
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
    // The group key of a test event is empty.
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

/** @param subscription `sub_…` */
export function eventEntry(event: ListedEvent, subscription: string): z.output<typeof EventEntry> {
  const { tokens = null, replayId: id = null } = event;
  return { ...describe(event, subscription), tokens, replayId: id, ...progressOf(event.progress) };
}

/** @param subscription `sub_…` */
export function eventDetail(event: InspectedEvent, subscription: string): z.output<typeof EventDetail> {
  const { meta, replays, responses, tokens = null } = event;
  return {
    ...describe(event, subscription),
    tokens,
    replayId: null,
    ...progressOf(event.progress),
    contentType: meta?.contentType ?? null,
    // Attributes reveal the content: they are withheld with the body.
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

/** @param subscription `sub_…` */
export function pulledEntry(event: PulledEvent, subscription: string): z.output<typeof PulledEntry> {
  const { meta, groupKey, ref, replayId: id = null } = event;
  const described = describe(
    { ref, meta, groupKey, acceptedMs: meta.time, bytes: event.body.length, tokens: undefined },
    subscription,
  );
  const { contentType = null } = meta;
  return { ...described, replayId: id, contentType, headers: headersOf(meta), ...bodyText(event.body) };
}
