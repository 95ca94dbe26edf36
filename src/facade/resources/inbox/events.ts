import { z } from 'zod';
import { queryInteger } from '../../../api/query-integer.ts';
import { EVENT_STATES, type EventState } from '../../../core/events/event-state.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { EventList, ListedEvent } from '../../../redis/inbox-reader.ts';
import { publicIdField } from '../../contract/fields.ts';
import { longPoll } from '../../contract/long-poll.ts';
import { PageQuery, pageOf } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { EventDetail, EventEntry, eventDetail, eventEntry } from './event-views.ts';
import { type OpenInbox, openEvent, openInbox } from './inbox-access.ts';

/** Pages that one call looks at to find something: most of an inbox may be in other states. */
const PAGES_AT_ONCE = 20;

const Instant = z.iso
  .datetime({ offset: true, error: 'has to be an RFC 3339 date and time such as 2026-01-31T12:00:00Z' })
  // Nothing was accepted before the epoch, and no position in a queue is negative.
  .transform(text => Math.max(1, Date.parse(text)));

const instantMeta = (description: string) => ({
  description: `${description} (RFC 3339).`,
  example: '2026-01-31T12:00:00Z',
});

/** RFC 3339 to ms since the epoch. */
export const instant = (description: string) => Instant.meta(instantMeta(description));

const States = z
  .string()
  .transform(text => text.split(',') as EventState[])
  .refine(states => states.every(state => EVENT_STATES.includes(state)), `has to be of ${EVENT_STATES.join(', ')}`)
  .optional()
  .meta({
    description: `Only events in these states, separated by commas: ${EVENT_STATES.join(', ')}.`,
    example: 'dead',
  });

const EventQuery = PageQuery.extend({
  subscription: publicIdField('Subscription').meta({ description: 'Of which subscription.' }),
  state: States,
  since: Instant.optional().meta(instantMeta('Accepted then or later')),
  until: Instant.optional().meta(instantMeta('Accepted before')),
  order: z.enum(['asc', 'desc']).optional().meta({ description: 'asc (default): oldest first. desc: newest first.' }),
  wait: queryInteger(/^([12]?\d|30)$/, 'has to be a number of seconds from 0 to 30', {
    minimum: 0,
    maximum: 30,
    description: 'Seconds to wait for an event while there is none, 0 to 30. Default 0.',
    example: 20,
  }),
});

const EventPage = pageOf(EventEntry)
  .extend({
    resumeCursor: z.string().nullable().meta({
      description: 'Where this page ends, to ask for what comes later; null while nothing has come.',
    }),
  })
  .meta({ id: 'InboxEventPage' });

type Query = z.output<typeof EventQuery>;
type Page = Extract<EventList, { readonly answer: 'OK' }>;

/** The next page with something on it, as far as one call looks. What has no inbox (yet) has no events. */
async function readPage({ inboxes }: Facade, { inbox }: OpenInbox, query: Query, cursor = query.cursor): Promise<Page> {
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
    cursor = page.cursor;
  }
}

/** The cursor behind an event, as the reader makes them. */
function cursorBehind(event: ListedEvent | undefined): string | undefined {
  if (event === undefined) return undefined;
  const name = event.replayId === undefined ? event.ref : `${event.ref}:${event.replayId}`;
  return Buffer.from(name).toString('base64url');
}

const listEvents = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/events',
  access: 'recipient',
  operation: 'listEvents',
  tag: 'Inbox',
  summary: 'List the events of a subscription',
  description:
    'In the order in which they were accepted; free. With wait, the answer comes as soon as there is an event, or after that time without one: a client that follows the inbox asks again with resumeCursor. Replays are listed where only open states, or only dead, skipped and expired, are asked for; test events are read by their id.',
  query: EventQuery,
  answers: { 200: { description: 'A page of events; it may be short, and have a nextCursor.', schema: EventPage } },
  problems: ['unknown_resource', 'malformed_cursor'],
  async handle(facade, { integration, query, signal }) {
    const opened = await openInbox(facade, integration, query.subscription);
    // What was looked at in vain is not looked at again.
    let from = query.cursor;
    const page = await longPoll(
      { clock: facade.clock, signal, waitMs: (query.wait ?? 0) * 1_000 },
      async () => {
        const found = await readPage(facade, opened, query, from);
        from = found.cursor ?? from;
        return found;
      },
      ({ events }) => events.length > 0,
    );
    const body: z.output<typeof EventPage> = {
      data: page.events.map(event => eventEntry(event, opened.id)),
      nextCursor: page.cursor ?? null,
      resumeCursor: page.cursor ?? cursorBehind(page.events.at(-1)) ?? query.cursor ?? null,
    };
    return { status: 200, body };
  },
});

const getEvent = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/events/{event}',
  access: 'recipient',
  operation: 'getEvent',
  tag: 'Inbox',
  summary: 'Read one event, with its body, attempts and answers',
  description: 'Free. A body that has not been delivered and may not be now is not shown; bodyWithheld says why.',
  answers: { 200: { description: 'The event.', schema: EventDetail } },
  problems: ['unknown_event'],
  async handle(facade, { integration, params }) {
    const { id, inbox, ref } = await openEvent(facade, integration, params.event);
    const found = await fromRedis(facade.inboxes.inspect(inbox, ref));
    if (found.answer !== 'OK') throw new Refusal('unknown_event');
    return { status: 200, body: eventDetail(found.event, id) };
  },
});

export const EVENT_ROUTES = [listEvents, getEvent];
