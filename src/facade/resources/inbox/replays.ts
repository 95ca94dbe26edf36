import { z } from 'zod';
import type { Replay } from '../../../accounts/replays.ts';
import { isTestRef } from '../../../core/events/test-event.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { cursorOf, type ListName } from '../../../core/ids/list-cursor.ts';
import { replayIdOf } from '../../../core/ids/replay-id.ts';
import { Refusal } from '../../../http/refusal.ts';
import { inboxMember } from '../../../plane/inbox-ref.ts';
import { REPLAYABLE_STATES, REPLAYED_AT_ONCE, type ReplaySelection } from '../../../plane/replay-prices.ts';
import { publicIdField } from '../../contract/fields.ts';
import { positionOf } from '../../contract/page.ts';
import { type Answer, defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { instant, refuseReversed } from './events.ts';
import { inboxRefusal, type OpenInbox, openEvent, openInbox } from './inbox-access.ts';

const price = {
  events: z.int().meta({ description: 'The number of events to replay.' }),
  tokens: z.int().meta({ description: "The price in tokens, which are charged to the receiving workspace's account." }),
};
const nextCursor = z
  .string()
  .nullable()
  .meta({
    description: `The cursor for the next replay, or null if there are no more events in the range. Each replay can contain up to ${REPLAYED_AT_ONCE} events.`,
  });

const ReplayEntry = z
  .object({
    replayId: z.string().nullable().meta({ description: 'The id of the replay, or null if no events were found.' }),
    subscriptionPublicId: publicIdField('Subscription'),
    ...price,
    complete: z.boolean().meta({
      description:
        'Indicates whether all events have been added to the inbox. If false, the replay has been charged but is still in progress.',
    }),
    taken: z.int().meta({ description: 'The number of events that have been added to the inbox so far.' }),
    refunded: z.int().meta({
      description:
        'The number of tokens refunded for events that could not be added to the inbox, for example because their retention period has ended.',
    }),
    nextCursor,
  })
  .meta({ id: 'Replay' });

const ReplayPrice = z.object({ ...price, nextCursor }).meta({ id: 'ReplayPrice' });

const ReplayRange = refuseReversed(
  z.strictObject({
    subscription: publicIdField('Subscription').meta({ description: 'The subscription.' }),
    since: instant('Only include events that were accepted at or after this time'),
    until: instant('Only include events that were accepted before this time').meta({ example: '2099-12-31T00:00:00Z' }),
    states: z
      .array(z.enum(REPLAYABLE_STATES))
      .min(1)
      .optional()
      .meta({
        description: `Only replay events that ended in one of these states. Defaults to all of ${REPLAYABLE_STATES.join(', ')}.`,
      }),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor returned by the previous replay.' }),
    dryRun: z.boolean().optional().meta({
      description:
        'Set to true to calculate the price and the number of events without starting a replay. Defaults to false.',
    }),
  }),
).meta({ id: 'ReplayRange' });

/**
 * Returns the name of the list of events to replay. A cursor of this list can be used for a dry run and for a replay.
 */
const rangeOf = (subscription: string): ListName => ['replay', subscription];

function replayEntry(subscription: string, replay: Replay): z.output<typeof ReplayEntry> {
  const { replayId, events, tokens, complete, taken, refunded, cursor } = replay;
  return {
    replayId,
    subscriptionPublicId: subscription,
    events,
    tokens,
    complete,
    taken,
    refunded,
    nextCursor: cursorOf(rangeOf(subscription), cursor),
  };
}

/** Returns the account to charge: the receiving workspace's account. */
const payerOf = ({ recipient }: OwnedIntegration) => publicId('Account', '', recipient.workspace.spec.account);

async function startReplay(
  facade: Facade,
  integration: OwnedIntegration,
  opened: OpenInbox,
  selection: ReplaySelection,
  idempotencyKey: string | undefined,
): Promise<Answer> {
  const { account } = integration.recipient.workspace.spec;
  if (facade.caches.get('Account', { name: account }) === undefined) {
    // Redis keeps the balance of a deleted account.
    throw new Refusal(
      'insufficient_tokens',
      `The account ${account} of the receiving workspace does not exist. Create it.`,
    );
  }
  const id = replayIdOf(idempotencyKey, inboxMember(opened.inbox), selection);
  const answer = await fromRedis(facade.replays.start(payerOf(integration), id, opened.inbox, selection));
  switch (answer.answer) {
    case 'OK':
      return {
        status: 202,
        body: replayEntry(opened.id, answer),
        headers: { location: `/waas/integrations/${integration.publicId}/replays/${answer.replayId}` },
      };
    case 'NOTHING': {
      const nothing = {
        events: 0,
        tokens: 0,
        complete: true,
        taken: 0,
        refunded: 0,
        nextCursor: cursorOf(rangeOf(opened.id), answer.cursor),
      };
      return { status: 202, body: { replayId: null, subscriptionPublicId: opened.id, ...nothing } };
    }
    case 'SHORT':
      throw new Refusal('insufficient_tokens');
    case 'CONFLICT':
      throw new Refusal('idempotency_conflict');
    case 'BAD_ID':
      throw new Refusal('invalid_request', {
        errors: [{ header: 'idempotency-key', detail: 'is not a valid replay id' }],
      });
    case 'EXPIRED':
    case 'OPEN_EVENT':
      if ('ref' in selection && isTestRef(selection.ref)) {
        throw new Refusal('event_expired', 'Test events cannot be replayed. Send another test event.');
      }
      throw inboxRefusal(facade, opened, answer.answer);
    default:
      throw inboxRefusal(facade, opened, answer.answer);
  }
}

const CHARGED =
  'Each event is charged again before any event is sent. Each delivery has the same `webhook-id` as before and an additional `webhook-replay` header. Repeating the request does not start a second replay. The Idempotency-Key header, or an id derived from the request, identifies the replay. To replay the same events again, use a new key.';
const REFUSED = [
  'insufficient_tokens',
  'stream_blocked',
  'subscription_not_live',
  'integration_not_active',
  'idempotency_conflict',
] as const;
const LOCATION = { Location: 'The path of the replay.' };

/**
 * The number of points charged for searching a range, in addition to the points of the call. Up to 50,000 events may
 * need to be checked.
 */
const RANGE_POINTS = 90;

const replayEvent = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/events/{event}/replay',
  access: 'recipient',
  scope: 'waas:replay',
  operation: 'replayEvent',
  tag: 'Inbox',
  summary: 'Replay an event',
  description: `Sends an event again after its delivery has ended. ${CHARGED}`,
  bodyElsewhere:
    'To replay a range of events, use POST /waas/integrations/{integration}/replay instead. The price can be calculated beforehand using dryRun.',
  dataPlane: true,
  idempotency: 'replay',
  answers: {
    202: {
      description: 'The replay has been charged and started.',
      schema: ReplayEntry,
      headers: LOCATION,
    },
  },
  problems: ['unknown_event', 'event_open', 'event_expired', 'group_key_inactive', ...REFUSED],
  async handle(facade, { integration, params, idempotencyKey }) {
    const { ref, ...opened } = await openEvent(facade, integration, params.event);
    return startReplay(facade, integration, opened, { ref }, idempotencyKey);
  },
});

const replayEvents = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/replay',
  access: 'recipient',
  scope: 'waas:replay',
  operation: 'replayEvents',
  tag: 'Inbox',
  summary: 'Replay a time range, or price it (dryRun)',
  description: `Replays events in order, leaving out any whose group key isn't active. ${CHARGED} Searching the range costs ${RANGE_POINTS} more points of the rate limit, also with dryRun.`,
  body: ReplayRange,
  dataPlane: true,
  idempotency: 'replay',
  cost: 10,
  answers: {
    202: {
      description: 'The replay has been charged and started.',
      schema: ReplayEntry,
      headers: LOCATION,
    },
    200: { description: 'The price and the number of events, as calculated by the dry run.', schema: ReplayPrice },
  },
  problems: ['unknown_resource', 'malformed_cursor', ...REFUSED],
  async handle(facade, { integration, body, charge, idempotencyKey }) {
    const { since: fromMs, until: toMs, states = REPLAYABLE_STATES, dryRun } = body;
    const opened = await openInbox(facade, integration, body.subscription);
    const cursor = positionOf(rangeOf(opened.id), body.cursor);
    charge({ points: RANGE_POINTS, what: 'Searching a range' });
    const sorted = [...new Set(states)].toSorted();
    const selection = { fromMs, toMs, states: sorted, ...(cursor === undefined ? {} : { cursor }) };
    if (dryRun !== true) return startReplay(facade, integration, opened, selection, idempotencyKey);
    const priced = await fromRedis(facade.replays.price(opened.inbox, selection));
    if (priced.answer !== 'OK') throw inboxRefusal(facade, opened, priced.answer);
    const { events, tokens } = priced;
    return {
      status: 200,
      body: { events: events.length, tokens, nextCursor: cursorOf(rangeOf(opened.id), priced.cursor) },
    };
  },
});

const getReplay = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/replays/{replay}',
  access: 'recipient',
  scope: 'waas:read',
  operation: 'getReplay',
  tag: 'Inbox',
  summary: 'Retrieve the progress of a replay',
  answers: { 200: { description: 'The requested replay.', schema: ReplayEntry } },
  problems: ['unknown_resource'],
  async handle(facade, { integration, params }) {
    const found = await fromRedis(facade.replays.read(payerOf(integration), integration.publicId, params.replay));
    if (found === undefined) {
      throw new Refusal(
        'unknown_resource',
        'The integration does not have a replay with this id. Check the id, which is the replayId of the response that started it. Replays are kept for 30 days.',
      );
    }
    return { status: 200, body: replayEntry(found.inbox.sub, found.replay) };
  },
});

export const REPLAY_ROUTES = [replayEvent, replayEvents, getReplay];
