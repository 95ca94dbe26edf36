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
  eventId: z.string().nullable().meta({ description: "The producer's id of it, which is its webhook-id." }),
  type: z.string().nullable().meta({ description: 'Its type; null where it has none.' }),
  groupKey: z.string().nullable().meta({ description: 'Its group key; null where that is not known any more.' }),
  acceptedAt: time('When it was accepted'),
  bytes: z.int().nullable().meta({ description: 'Of its body.' }),
};

const body = {
  contentType: z.string().nullable().meta({ description: 'As the producer sent it, or null.' }),
  headers: z.record(z.string(), z.string()).meta({
    description:
      "Headers as a delivery has them: those of the CloudEvent (`ce-…`; none of a structured one, and none while the body is withheld), and those of the producer's request that are passed on.",
  }),
  body: z
    .string()
    .nullable()
    .meta({ description: 'Its body, in bodyEncoding; null where it is not kept or not shown.' }),
  bodyEncoding: z
    .enum(['utf8', 'base64'])
    .nullable()
    .meta({ description: 'utf8: the body is text as it is. base64 (RFC 4648): it is other bytes.' }),
};

const progress = {
  state: z.enum(EVENT_STATES).meta({
    description:
      'pending: waits for its first attempt; inflight: one is under way; retrying: waits for the next; the others are final.',
  }),
  attempts: z.int().meta({ description: 'Attempts made.' }),
  nextAttemptAt: time('When the next attempt is due').nullable(),
  endedAt: time('When it ended').nullable(),
  reason: z.string().nullable().meta({ description: 'By what it ended: an HTTP status, or one word.' }),
};

const replayId = z.string().nullable().meta({ description: 'Of a replay: its id. null: the first delivery.' });

export const EventEntry = z
  .object({
    ...described,
    tokens: z.int().nullable().meta({ description: 'What a replay costs.' }),
    replayId,
    ...progress,
  })
  .meta({ id: 'InboxEvent' });

const Attempt = z
  .object({
    at: time('When it ended'),
    result: z.string().meta({ description: 'HTTP status, or one word that says why there was none.' }),
    latencyMs: z.number().meta({ description: 'How long it took, milliseconds.' }),
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
    description: 'Why the body is not shown, in one word: it has not been delivered, and may not be now. Else null.',
  }),
  history: z.array(Attempt).meta({ description: 'The last attempts, oldest first.' }),
  replays: z.array(Delivery).meta({ description: 'Its replays: the last 20, and all that are open.' }),
  responses: z
    .array(
      z.object({
        replayId,
        attempt: z.int().meta({ description: 'Number of the attempt, from 1.' }),
        body: z.string().meta({ description: 'What it was answered with, at most 16 KiB, in bodyEncoding.' }),
        bodyEncoding: z.enum(['utf8', 'base64']).meta({ description: 'utf8 or base64.' }),
        truncated: z.boolean().meta({ description: 'Whether the answer was longer, or was cut off.' }),
      }),
    )
    .meta({ description: 'Answers to failed attempts, of those that are still kept.' }),
}).meta({ id: 'InboxEventDetail' });

export const PulledEntry = z.object({ ...described, replayId, ...body }).meta({ id: 'PulledEvent' });

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes as JSON can say them: as text where they are text to the last byte, else as base64. */
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
    // That of a test event is empty.
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
    // Attributes tell of the content: they are withheld with the body.
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
