import { z } from 'zod';
import { EVENT_STATES } from '../../../core/events/event-state.ts';
import { tokensOf } from '../../../core/events/tokens.ts';
import { generationOf, publicId } from '../../../core/ids/ids.ts';
import type { ListName } from '../../../core/ids/list-cursor.ts';
import { dispositionOf, type EventDisposition } from '../../../core/routing/event-disposition.ts';
import { type GateVerdict, judgeGate } from '../../../core/routing/gate-verdict.ts';
import type { HeldReason } from '../../../core/routing/reasons.ts';
import type { InboxRef } from '../../../plane/inbox-ref.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdOf } from '../../caches/indexes.ts';
import { publicIdField, timeField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { type AdditionalPoints, defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { gateOfObjects, integrationRoute } from '../../objects/gate-of-objects.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { chooseIntegrations, chooseStream, StreamChoice, StreamName, streamName } from '../streams/stream-choice.ts';
import { IntegrationName, Reason, shortage } from './explain.ts';
import { findEvent } from './find-event.ts';

const DispositionEntry = z
  .object({
    integrationPublicId: publicIdField('Integration'),
    integrationName: IntegrationName,
    subscriptionPublicId: publicIdField('Subscription').nullable().meta({
      description:
        "The integration's subscription to the stream, if it has one, or the deleted subscription to which the event was routed.",
    }),
    disposition: z.enum(['routed', 'waiting', 'not_routed']).meta({
      description:
        "The event's disposition: routed (it is or was in the inbox), waiting (it may still be routed), or not_routed.",
    }),
    reason: Reason.nullable().meta({
      description:
        'The reason why this event is not routed or is still waiting, or null if the event has been routed or is about to be routed. skipped_to_now means that the group key was active, but the event was accepted before the subscription was created, or during a pause after which events were skipped. If the group key was deactivated later, the reason is not_activated, even if the key is active again.',
    }),
    state: z.enum(EVENT_STATES).nullable().meta({
      description:
        "The delivery's state, if the event was routed. After the subscription has been deleted, this is the last state, or null if the inbox was removed before the delivery ended.",
    }),
    attempts: z.int().meta({ description: 'The number of times delivery has been attempted so far.' }),
    nextAttemptAt: timeField('The time at which the next attempt is due').nullable(),
    endedAt: timeField('The time at which the delivery ended').nullable(),
    endedBy: z
      .string()
      .nullable()
      .meta({ description: 'The reason why the delivery ended, which is either an HTTP status or a reason code.' }),
  })
  .meta({ id: 'EventDisposition' });

const ProducedEvent = pageOf(DispositionEntry)
  .extend({
    eventId: z
      .string()
      .meta({ description: 'The event id specified by the producer. Included in deliveries as webhook-id.' }),
    stream: StreamName.meta({ description: "The event's stream." }),
    type: z.string().nullable().meta({ description: "The event's type, if it has one." }),
    groupKey: z.string().nullable().meta({ description: "The event's group key, if it has one." }),
    acceptedAt: timeField('The time at which ingress accepted the event'),
    bytes: z.int().meta({ description: 'The size of the body in bytes.' }),
    tokens: z.int().meta({ description: 'The price in tokens for each integration.' }),
  })
  .meta({ id: 'ProducedEvent' });

const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString());

/** Returns an integration's entry, based on the result of `dispositionOf`. */
function dispositionEntry(
  integrationPublicId: string,
  subscriptionPublicId: string | null,
  { disposition, progress, reason }: EventDisposition,
  waits?: GateVerdict['reason'],
): Omit<z.output<typeof DispositionEntry>, 'integrationName'> {
  return {
    integrationPublicId,
    subscriptionPublicId,
    disposition,
    reason: reason ?? waits ?? null,
    state: progress?.state ?? null,
    attempts: progress?.attempts ?? 0,
    nextAttemptAt: timeOf(progress?.dueMs),
    endedAt: timeOf(progress?.endedMs),
    endedBy: progress?.reason ?? null,
  };
}

/**
 * Returns the inbox of the pair's oldest subscription in the receiving workspace. The subscription may no longer be in
 * effect.
 */
function formerInbox(
  { caches }: Facade,
  { metadata: { namespace, name }, spec: { workspace } }: Cached<'Integration'>,
  integration: string,
  stream: string,
): InboxRef | undefined {
  const [oldest] = caches
    .by('Subscription', 'integration', `${namespace}/${name}`)
    .filter(({ metadata, spec }) => spec.stream === stream && metadata.namespace === workspace)
    .toSorted((a, b) => ageOf(a) - ageOf(b));
  if (oldest === undefined) return undefined;
  const { metadata } = oldest;
  const sub = publicId('Subscription', metadata.namespace ?? '', metadata.name);
  return { integration, sub, inc: generationOf(metadata.uid) };
}

const ageOf = ({ metadata }: Cached<'Subscription'>) => Date.parse(metadata.creationTimestamp ?? '') || 0;

/** Returns the reason why an event is waiting or can't be routed. Undefined if the event will be routed soon. */
function waitsFor({ reason }: GateVerdict, short: HeldReason | undefined): GateVerdict['reason'] {
  return reason ?? short;
}

/** The number of streams that a call can search without additional points. */
const INCLUDED_STREAMS = 100;
/** The number of points charged for searching up to `INCLUDED_STREAMS` more streams. */
const SEARCH_POINTS = 10;

/**
 * Charges the points for searching this many streams.
 *
 * @throws Refusal 429 `rate_limited` if the caller or the account doesn't have enough points
 */
function chargeSearch(streams: number, charge: (more: AdditionalPoints) => void): void {
  const points = (Math.ceil(streams / INCLUDED_STREAMS) - 1) * SEARCH_POINTS;
  if (points <= 0) return;
  charge({ points, what: `Searching all ${streams} streams`, remedy: 'To avoid these points, specify the stream.' });
}

const getProducedEvent = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/events/{eventId}',
  access: 'producer',
  scope: 'waas:read',
  operation: 'getProducedEvent',
  tag: 'Events',
  summary: 'Find out where an event went',
  description:
    "Returns an accepted event and its disposition for each integration. For a routed event, this includes the delivery state. For any other event, it includes the reason. You can look up events by the producer's id for at least 24 hours, or by inbox id (`evt_` and 35 characters) until the end of their retention period. If the same id was used several times, even in different streams, the most recent event is returned. Searching more than 100 streams costs 10 more points of the rate limit for every 100 streams.",
  query: PageQuery.extend({
    stream: StreamChoice.optional().meta({
      description: 'The public id or key of the stream. If not specified, all streams are searched.',
    }),
    integration: publicIdField('Integration')
      .optional()
      .meta({ description: 'Only return this integration. Defaults to all integrations.' }),
  }),
  cost: 10,
  answers: {
    200: {
      description: 'The event, and a list of its dispositions sorted by integration.',
      schema: ProducedEvent,
    },
  },
  problems: ['unknown_resource', 'unknown_event', 'malformed_cursor'],
  async handle(facade, { tenant, params, query, charge }) {
    const streams =
      query.stream === undefined
        ? facade.caches
            .list('CatalogStream', tenant.name)
            .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
        : [await chooseStream(facade, tenant.name, query.stream)];
    const integrations = await chooseIntegrations(facade, tenant.name, query.integration);
    chargeSearch(streams.length, charge);
    const { stream, event } = await findEvent(facade, tenant, streams, params.eventId);
    const name = stream.metadata.name;
    const { id, ref, meta, bytes } = event;
    // Another event with the same id may be accepted between two pages.
    const list: ListName = ['event', tenant.name, name, ref];
    const page = paginate(list, integrations, each => publicIdOf('Integration', each), query);
    const { groupKey } = meta;
    const [{ cursor }, former, short] = await Promise.all([
      fromRedis(facade.routing.readQueue(tenant.publicId, name)),
      fromRedis(facade.routing.readFormerInboxes(tenant.publicId, name, ref)),
      shortage(facade, tenant, name),
    ]);
    const data = await Promise.all(
      page.data.map(async integration => {
        const to = publicIdOf('Integration', integration);
        const deleted = former.findLast(inbox => inbox.integration === to);
        const inbox = deleted ?? formerInbox(facade, integration, to, name);
        const read = await fromRedis(
          facade.routing.readDisposition(tenant.publicId, name, to, { ref, groupKey }, inbox),
        );
        const state = integrationRoute(integration, facade.wallMs());
        const disposition = dispositionOf({
          id,
          groupKey,
          cursor,
          integration: state,
          nowMs: facade.nowMs(),
          wasRouted: deleted !== undefined,
          ...read,
        });
        const question = { tenant, stream, integration, groupKey, nowMs: facade.wallMs() };
        const waits =
          disposition.disposition === 'waiting'
            ? waitsFor(judgeGate(gateOfObjects(facade.caches, question)), short)
            : undefined;
        const subscription = deleted?.sub ?? read.subscription?.id ?? inbox?.sub ?? null;
        return {
          integrationName: integration.metadata.name,
          ...dispositionEntry(to, subscription, disposition, waits),
          // There are no more attempts for a deleted subscription.
          ...(deleted === undefined ? {} : { nextAttemptAt: null }),
        };
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
