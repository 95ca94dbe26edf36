import { z } from 'zod';
import { EVENT_STATES } from '../../../core/events/event-state.ts';
import { tokensOf } from '../../../core/events/tokens.ts';
import { generationOf, publicId } from '../../../core/ids/ids.ts';
import { parsePublicEventId } from '../../../core/ids/public-event-id.ts';
import { type EventFate, fateOf } from '../../../core/routing/event-fate.ts';
import { type GateVerdict, judgeGate } from '../../../core/routing/gate-verdict.ts';
import type { HeldReason } from '../../../core/routing/reasons.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { InboxRef } from '../../../redis/inbox-store.ts';
import type { FoundEvent } from '../../../redis/routing-reader.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Cached } from '../../objects/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import { gateOfObjects, integrationRoute } from '../../objects/gate-of-objects.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { chooseIntegrations, chooseStream, StreamChoice, StreamName, streamName } from '../streams/stream-choice.ts';
import { IntegrationName, Reason, shortage } from './explain.ts';

/** Queues that are looked into at once. */
const QUEUES_AT_ONCE = 20;

const time = (description: string) =>
  z
    .string()
    .meta({ format: 'date-time', description: `${description} (RFC 3339).`, example: '2026-01-31T12:00:00.000Z' });

const FateEntry = z
  .object({
    integrationPublicId: publicIdField('Integration'),
    integrationName: IntegrationName,
    subscriptionPublicId: publicIdField('Subscription')
      .nullable()
      .meta({ description: 'null: it does not subscribe.' }),
    fate: z.enum(['routed', 'waiting', 'not_routed']).meta({
      description: 'routed: it is or was in the inbox. waiting: it may come there yet. not_routed: it will not.',
    }),
    reason: Reason.nullable().meta({
      description: 'Why it was not routed, or what it waits for; null: it was routed, or is about to be.',
    }),
    state: z.enum(EVENT_STATES).nullable().meta({ description: 'What became of it in the inbox; null: not routed.' }),
    attempts: z.int().meta({ description: 'Attempts made.' }),
    nextAttemptAt: time('When the next attempt is due').nullable(),
    endedAt: time('When it ended').nullable(),
    endedBy: z.string().nullable().meta({ description: 'By what it ended: an HTTP status, or one word.' }),
  })
  .meta({ id: 'EventFate' });

const ProducedEvent = pageOf(FateEntry)
  .extend({
    eventId: z.string().meta({ description: 'As the producer gave it; its webhook-id.' }),
    stream: StreamName.meta({ description: 'The stream that it was sent to.' }),
    type: z.string().nullable().meta({ description: 'Its type; null where it has none.' }),
    groupKey: z.string().nullable().meta({ description: 'Its group key; null where it has none.' }),
    acceptedAt: time('When it was accepted'),
    bytes: z.int().meta({ description: 'Of its body.' }),
    tokens: z.int().meta({ description: 'What its distribution costs for each integration.' }),
  })
  .meta({ id: 'ProducedEvent' });

const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString());

/** One integration's part, from what `fateOf` has decided. */
export function fateEntry(
  integrationPublicId: string,
  subscriptionPublicId: string | null,
  { fate, progress, reason }: EventFate,
  waits?: GateVerdict['reason'],
): Omit<z.output<typeof FateEntry>, 'integrationName'> {
  return {
    integrationPublicId,
    subscriptionPublicId,
    fate,
    reason: reason ?? waits ?? null,
    state: progress?.state ?? null,
    attempts: progress?.attempts ?? 0,
    nextAttemptAt: timeOf(progress?.dueMs),
    endedAt: timeOf(progress?.endedMs),
    endedBy: progress?.reason ?? null,
  };
}

/** The event and its stream: of several with this id, in the first stream by key. @throws Refusal 404 `unknown_event` */
async function findEvent(
  facade: Facade,
  tenant: string,
  streams: readonly Cached<'CatalogStream'>[],
  eventId: string,
): Promise<{ readonly stream: Cached<'CatalogStream'>; readonly event: FoundEvent }> {
  const ref = parsePublicEventId(eventId)?.ref;
  const look = async (stream: Cached<'CatalogStream'>) => {
    const find = (wanted: { eventId: string } | { ref: string }) =>
      facade.routing.findEvent(tenant, stream.metadata.name, wanted);
    const event = (await find({ eventId })) ?? (ref === undefined ? undefined : await find({ ref }));
    return event === undefined ? undefined : { stream, event };
  };
  for (let at = 0; at < streams.length; at += QUEUES_AT_ONCE) {
    const found = await fromRedis(Promise.all(streams.slice(at, at + QUEUES_AT_ONCE).map(look)));
    const first = found.find(each => each !== undefined);
    if (first !== undefined) return first;
  }
  throw new Refusal('unknown_event');
}

/** The inbox of a subscription that may not be in force any more: the oldest of this pair, in the workspace of the grant. */
function formerInbox(
  { world }: Facade,
  { metadata: { namespace, name }, spec: { workspace } }: Cached<'Integration'>,
  integration: string,
  stream: string,
): InboxRef | undefined {
  const [oldest] = world
    .by('Subscription', 'integration', `${namespace}/${name}`)
    .filter(({ metadata, spec }) => spec.stream === stream && metadata.namespace === workspace)
    .toSorted((a, b) => ageOf(a) - ageOf(b));
  if (oldest === undefined) return undefined;
  const { metadata } = oldest;
  const sub = publicId('Subscription', metadata.namespace ?? '', metadata.name);
  return { integration, sub, inc: generationOf(metadata.uid) };
}

const ageOf = ({ metadata }: Cached<'Subscription'>) => Date.parse(metadata.creationTimestamp ?? '') || 0;

/** What an event waits for, or why it will not go there as things are; undefined: its turn comes. */
function waitsFor({ reason }: GateVerdict, short: HeldReason | undefined): GateVerdict['reason'] {
  return reason ?? short;
}

const getProducedEvent = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/events/{eventId}',
  access: 'producer',
  operation: 'getProducedEvent',
  tag: 'Events',
  summary: 'Tell where an event went',
  description:
    'What was accepted, and for each integration what became of it, or why it did not go there. An id is remembered for 24 hours at least; ids of inboxes (`evt_` and 35 characters) are found as long as the event is kept. An id that was used again names the youngest event.',
  query: PageQuery.extend({
    stream: StreamChoice.optional().meta({
      description: 'The stream: its public id, or its key. Default: all are searched.',
    }),
    integration: publicIdField('Integration').optional().meta({ description: 'Only this integration. Default all.' }),
  }),
  answers: { 200: { description: 'The event, and a page of its fates by integration.', schema: ProducedEvent } },
  problems: ['unknown_resource', 'unknown_event', 'malformed_cursor'],
  async handle(facade, { tenant, params, query }) {
    const streams =
      query.stream === undefined
        ? facade.world
            .list('CatalogStream', tenant.name)
            .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
        : [await chooseStream(facade, tenant.name, query.stream)];
    const integrations = await chooseIntegrations(facade, tenant.name, query.integration);
    const { stream, event } = await findEvent(facade, tenant.publicId, streams, params.eventId);
    const page = paginate(integrations, ({ metadata }) => publicId('Integration', tenant.name, metadata.name), query);
    const name = stream.metadata.name;
    const { id, ref, meta, bytes } = event;
    const { groupKey } = meta;
    const [{ cursor }, short] = await Promise.all([
      fromRedis(facade.routing.readQueue(tenant.publicId, name)),
      shortage(facade, tenant, name),
    ]);
    const data = await Promise.all(
      page.data.map(async integration => {
        const to = publicId('Integration', tenant.name, integration.metadata.name);
        const inbox = formerInbox(facade, integration, to, name);
        const read = await fromRedis(facade.routing.readFate(tenant.publicId, name, to, { ref, groupKey }, inbox));
        const state = integrationRoute(integration, facade.wallMs());
        const fate = fateOf({ id, groupKey, cursor, integration: state, nowMs: facade.nowMs(), ...read });
        const question = { tenant, stream, integration, groupKey, nowMs: facade.wallMs() };
        const waits =
          fate.fate === 'waiting' ? waitsFor(judgeGate(gateOfObjects(facade.world, question)), short) : undefined;
        const subscription = read.subscription?.id ?? inbox?.sub ?? null;
        return { integrationName: integration.metadata.name, ...fateEntry(to, subscription, fate, waits) };
      }),
    );
    const body: z.output<typeof ProducedEvent> = {
      eventId: meta.id,
      stream: streamName(stream),
      type: meta.type ?? null,
      groupKey: groupKey === '' ? null : groupKey,
      acceptedAt: new Date(meta.time).toISOString(),
      bytes,
      tokens: tokensOf(bytes),
      data,
      nextCursor: page.nextCursor,
    };
    return { status: 200, body };
  },
});

export const PRODUCER_EVENT_ROUTES = [getProducedEvent];
