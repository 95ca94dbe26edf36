import { z } from 'zod';
import { queryInteger } from '../../../api/query-integer.ts';
import { MUST_BE_TIME } from '../../../api/strings.ts';
import { EVENT_STATES, type EventState } from '../../../core/events/event-state.ts';
import { tenantId } from '../../../core/ids/ids.ts';
import { cursorOf, type ListName } from '../../../core/ids/list-cursor.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { EventList, ListedEvent } from '../../../plane/inbox-reader.ts';
import { PATH_PARAMETERS, publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, positionOf } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { EventDetail, EventEntry, eventDetail, eventEntry } from './event-views.ts';
import { type OpenInbox, openEvent, openInbox } from './inbox-access.ts';

/**
 * The maximum number of pages a call will scan for a matching event. Necessary because most events may be in other
 * states.
 */
const PAGES_AT_ONCE = 20;
/** The number of points for each additional page. Up to 1,000 events are checked for each page. */
const PAGE_POINTS = 10;

/** In a query, `+` stands for a space, so this is what remains of an offset such as +01:00. */
const LOST_PLUS = /T\S+ \d\d:\d\d$/;

const Instant = z.iso
  .datetime({
    offset: true,
    error: ({ input }) =>
      typeof input === 'string' && LOST_PLUS.test(input) ? `${MUST_BE_TIME}. In a query, write + as %2B` : MUST_BE_TIME,
  })
  // The minimum is 1 because there are no events before the epoch. A queue position can't be negative.
  .transform(text => Math.max(1, Date.parse(text)));

const instantMeta = (description: string) => ({
  description: `${description} (RFC 3339).`,
  example: '2026-01-31T12:00:00Z',
});

/** Returns a schema that will convert a time in RFC 3339 format to milliseconds since the epoch. */
export const instant = (description: string) => Instant.meta(instantMeta(description));

/** Refuses a range that ends before it starts, which is never what the caller wants. */
export const refuseReversed = <S extends z.ZodType<{ since?: number | undefined; until?: number | undefined }>>(
  range: S,
): S =>
  // A time that is not valid is NaN here. It already has its own error.
  range.refine(({ since, until }) => since === undefined || until === undefined || !(since > until), {
    path: ['until'],
    error: 'must not be before since',
  });

const States = z
  .string()
  .transform(text => text.split(',') as EventState[])
  .refine(
    states => states.every(state => EVENT_STATES.includes(state)),
    `must be one or more of ${EVENT_STATES.join(', ')}, separated by commas`,
  )
  .optional()
  .meta({
    description: `A comma-separated list of states used to filter the events. Can be any of ${EVENT_STATES.join(', ')}.`,
    example: 'dead',
  });

const EventQuery = refuseReversed(
  PageQuery.extend({
    subscription: publicIdField('Subscription').meta({ description: 'The subscription.' }),
    state: States,
    since: Instant.optional().meta(instantMeta('Only include events that were accepted at or after this time')),
    until: Instant.optional().meta(instantMeta('Only include events that were accepted before this time')),
    eventId: PATH_PARAMETERS.eventId.optional().meta({
      description:
        'Only include the event with this id, which is the `webhook-id` of its deliveries, or the `id` of a CloudEvent. You can look up events by the id that the producer has specified for at least 24 hours. If the same id was used several times, only the most recent event is included. You cannot combine `eventId` with `cursor`.',
      example: 'order-4711',
    }),
    order: z.enum(['asc', 'desc']).optional().meta({
      description: 'The sort order, either asc for oldest first or desc for newest first. Defaults to asc.',
    }),
    wait: queryInteger(/^([12]?\d|30)$/, 'must be a number of seconds from 0 to 30', {
      minimum: 0,
      maximum: 30,
      description:
        'The number of seconds to wait if there are no events yet. Must be between 0 and 30. Defaults to 0. Each caller can have up to 16 concurrent calls waiting for events.',
      example: 20,
    }),
  }),
);

const EventPage = pageOf(EventEntry)
  .extend({
    resumeCursor: z.string().nullable().meta({
      description:
        "A cursor for retrieving events after this page, including events which don't exist yet. If no event has matched so far, this is null. In this case, repeat the request without a cursor. If you use `state`, the cursor skips earlier events that reach this state later. To find them as well, start without a cursor.",
    }),
  })
  .meta({ id: 'InboxEventPage' });

type Query = z.output<typeof EventQuery>;
type Page = Extract<EventList, { readonly answer: 'OK' }>;

/**
 * Reads up to `PAGES_AT_ONCE` pages until a page with events is found. Stops if `spend` does not allow another page.
 * Returns an empty page if the subscription does not have an inbox.
 */
async function readPage(
  { inboxes }: Facade,
  { inbox }: OpenInbox,
  query: Query,
  spend: (points: number) => boolean,
  cursor: string | undefined,
): Promise<Page> {
  const { state: states, since: fromMs, until: toMs, order, limit = 50 } = query;
  const options = {
    ...(states && { states }),
    ...(fromMs !== undefined && { fromMs }),
    ...(toMs !== undefined && { toMs }),
    newestFirst: order === 'desc',
    limit,
  };
  for (let pages = 1; ; pages++) {
    const page = await fromRedis(inboxes.list(inbox, { ...options, cursor }));
    if (page.answer !== 'OK') {
      if (page.answer === 'BAD_CURSOR') throw new Refusal('malformed_cursor');
      return { answer: 'OK', events: [], cursor: undefined };
    }
    if (page.events.length > 0 || page.cursor === undefined || pages === PAGES_AT_ONCE) return page;
    if (!spend(PAGE_POINTS)) return page;
    cursor = page.cursor;
  }
}

/** Returns a page with the event that has this producer's id, or an empty page. */
async function readEventWithId(
  { routing, inboxes }: Facade,
  { inbox, subscription }: OpenInbox,
  { state: states, since = 0, until = Number.POSITIVE_INFINITY }: Query,
  eventId: string,
): Promise<Page> {
  const { producer, stream } = subscription.spec;
  const event = await fromRedis(routing.findEvent(tenantId(producer), stream, { eventId }));
  const found = event && (await fromRedis(inboxes.inspect(inbox, event.ref)));
  const events =
    found?.answer === 'OK' &&
    (states === undefined || states.includes(found.event.progress.state)) &&
    found.event.acceptedMs >= since &&
    found.event.acceptedMs < until
      ? [found.event]
      : [];
  return { answer: 'OK', events, cursor: undefined };
}

/** Returns the position after an event, in the format of the reader. */
function positionBehind(event: ListedEvent | undefined): string | undefined {
  if (event === undefined) return undefined;
  const name = event.replayId === undefined ? event.ref : `${event.ref}:${event.replayId}`;
  return Buffer.from(name).toString('base64url');
}

const ID_OR_CURSOR = { parameter: 'cursor', detail: 'cannot be combined with eventId, which has a single page' };

const listEvents = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/events',
  access: 'recipient',
  scope: 'waas:read',
  operation: 'listEvents',
  tag: 'Inbox',
  summary: 'List all events for a subscription',
  description:
    'Returns events in the order in which they were accepted, free of charge. To follow the inbox, request the next page with `resumeCursor`. With `wait`, the request returns when there is an event, or after this time. Replays are only included if `state` is limited to open states, or to dead, skipped, and expired. If more than 1,000 deliveries of the subscription are open, open replays are not included. Test events are never listed, but you can retrieve them by id. If none of the first 1,000 events match, up to 19,000 more are searched. Every 1,000 of them cost 10 more points. If you have no points left, the search stops.',
  query: EventQuery,
  cost: 5,
  answers: {
    200: {
      description:
        'A list of events. A nextCursor may be included even if the page contains fewer than `limit` events.',
      schema: EventPage,
    },
  },
  problems: ['unknown_resource', 'malformed_cursor'],
  async handle(facade, { integration, query, spend, waitFor }) {
    const { eventId, cursor } = query;
    if (eventId !== undefined && cursor !== undefined) throw new Refusal('invalid_request', { errors: [ID_OR_CURSOR] });
    const list: ListName = ['events', query.subscription];
    // Continue at the last position so that a page is never scanned twice.
    let from = positionOf(list, cursor);
    const page = await waitFor(
      query.wait ?? 0,
      async () => {
        // The subscription may be deleted during the wait.
        const opened = await openInbox(facade, integration, query.subscription);
        const found =
          eventId === undefined
            ? await readPage(facade, opened, query, spend, from)
            : await readEventWithId(facade, opened, query, eventId);
        from = found.cursor ?? from;
        return found;
      },
      ({ events }) => events.length > 0,
    );
    const body: z.output<typeof EventPage> = {
      data: page.events.map(event => eventEntry(event, query.subscription)),
      nextCursor: cursorOf(list, page.cursor),
      resumeCursor: cursorOf(list, page.cursor ?? positionBehind(page.events.at(-1))) ?? cursor ?? null,
    };
    return { status: 200, body };
  },
});

const getEvent = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/events/{event}',
  access: 'recipient',
  scope: 'waas:read',
  operation: 'getEvent',
  tag: 'Inbox',
  summary: 'Retrieve an event with its body, attempts, and responses',
  description:
    "Returns an event with its body, its attempts, and the responses to failed attempts, free of charge. If no attempt has been made and the event can't be delivered at the moment, Sluice withholds the body. `bodyWithheld` then contains the reason.",
  answers: { 200: { description: 'The requested event.', schema: EventDetail } },
  problems: ['unknown_event'],
  async handle(facade, { integration, params }) {
    const { id, inbox, ref } = await openEvent(facade, integration, params.event);
    const found = await fromRedis(facade.inboxes.inspect(inbox, ref));
    if (found.answer !== 'OK') throw new Refusal('unknown_event');
    return { status: 200, body: eventDetail(found.event, id) };
  },
});

export const EVENT_ROUTES = [listEvents, getEvent];
