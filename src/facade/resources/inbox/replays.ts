import { z } from 'zod';
import { publicId } from '../../../core/ids/ids.ts';
import { replayIdOf } from '../../../core/ids/replay-id.ts';
import { Refusal } from '../../../http/refusal.ts';
import { inboxMember } from '../../../redis/inbox-store.ts';
import { REPLAYABLE_STATES, REPLAYED_AT_ONCE, type ReplaySelection } from '../../../redis/replay-prices.ts';
import type { Replay } from '../../../redis/replays.ts';
import { publicIdField } from '../../contract/fields.ts';
import { type Answer, defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { instant } from './events.ts';
import { inboxRefusal, type OpenInbox, openEvent, openInbox } from './inbox-access.ts';

const price = {
  events: z.int().meta({ description: 'The number of events to replay.' }),
  tokens: z
    .int()
    .meta({ description: 'The price in tokens, which is charged to the account of the receiving workspace.' }),
};
const nextCursor = z
  .string()
  .nullable()
  .meta({
    description: `The cursor for the next replay if the range contains more than ${REPLAYED_AT_ONCE} events. Otherwise, the value is null.`,
  });

const ReplayEntry = z
  .object({
    replayId: z
      .string()
      .nullable()
      .meta({ description: 'The id of the replay. The value is null if there were no events to replay.' }),
    subscriptionPublicId: publicIdField('Subscription'),
    ...price,
    complete: z
      .boolean()
      .meta({ description: 'Whether all events are in the inbox. If false, the replay is charged and in progress.' }),
    taken: z.int().meta({ description: 'The number of events that are already in the inbox.' }),
    refunded: z
      .int()
      .meta({ description: 'The number of tokens that were refunded because the retention period of events ended.' }),
    nextCursor,
  })
  .meta({ id: 'Replay' });

const ReplayPrice = z.object({ ...price, nextCursor }).meta({ id: 'ReplayPrice' });

const ReplayRange = z
  .strictObject({
    subscription: publicIdField('Subscription').meta({ description: 'The subscription.' }),
    since: instant('Returns only events accepted at or after this time'),
    until: instant('Returns only events accepted before this time').meta({ example: '2099-12-31T00:00:00Z' }),
    states: z
      .array(z.enum(REPLAYABLE_STATES))
      .min(1)
      .optional()
      .meta({
        description: `Replays only events that ended in these states. By default, all of these states are included: ${REPLAYABLE_STATES.join(', ')}.`,
      }),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor of the previous replay.' }),
    dryRun: z.boolean().optional().meta({
      description:
        'If true, the call returns the number of events and the price without replaying them. Defaults to false.',
    }),
  })
  .meta({ id: 'ReplayRange' });

function replayEntry(subscription: string, replay: Replay): z.output<typeof ReplayEntry> {
  const { replayId, events, tokens, complete, taken, refunded, cursor = null } = replay;
  return {
    replayId,
    subscriptionPublicId: subscription,
    events,
    tokens,
    complete,
    taken,
    refunded,
    nextCursor: cursor,
  };
}

/** Returns the account to charge, i.e. the account of the receiving workspace. */
const payerOf = ({ recipient }: OwnedIntegration) => publicId('Account', '', recipient.workspace.spec.account);

async function startReplay(
  facade: Facade,
  integration: OwnedIntegration,
  opened: OpenInbox,
  selection: ReplaySelection,
  idempotencyKey: string | undefined,
): Promise<Answer> {
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
        nextCursor: answer.cursor ?? null,
      };
      return { status: 202, body: { replayId: null, subscriptionPublicId: opened.id, ...nothing } };
    }
    case 'SHORT':
      throw new Refusal('insufficient_tokens');
    case 'CONFLICT':
      throw new Refusal('replay_conflict');
    case 'BAD_ID':
      throw new Refusal('invalid_request', {
        errors: [{ header: 'idempotency-key', detail: 'is not a valid replay id' }],
      });
    default:
      throw inboxRefusal(facade, opened, answer.answer);
  }
}

const CHARGED =
  'A replay costs the tokens of each event again, and Sluice charges them once before it sends any events. The Idempotency-Key header is the id of the replay. If you do not send a key, Sluice derives the id from the request, and a repeated call does not start a second replay. To replay the same events again, send a new key. Deliveries have the same `webhook-id` and an additional `webhook-replay` header.';
const REFUSED = [
  'insufficient_tokens',
  'stream_blocked',
  'subscription_not_live',
  'integration_not_active',
  'replay_conflict',
] as const;
const LOCATION = { Location: 'The path of the replay.' };

const replayEvent = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/events/{event}/replay',
  access: 'recipient',
  operation: 'replayEvent',
  tag: 'Inbox',
  summary: 'Replay one event',
  description: CHARGED,
  bodyElsewhere:
    'Use POST /waas/integrations/{integration}/replay to replay a range. You can set dryRun to get the price.',
  dataPlane: true,
  answers: { 202: { description: 'The replay is charged and started.', schema: ReplayEntry, headers: LOCATION } },
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
  operation: 'replayEvents',
  tag: 'Inbox',
  summary: 'Replay a time range, or price it (dryRun)',
  description: `Replays events in order. Events are not replayed if their group key is not active. ${CHARGED}`,
  body: ReplayRange,
  dataPlane: true,
  answers: {
    202: { description: 'The replay is charged and started.', schema: ReplayEntry, headers: LOCATION },
    200: { description: 'The number of events and the price of the dry run.', schema: ReplayPrice },
  },
  problems: ['unknown_resource', 'malformed_cursor', ...REFUSED],
  async handle(facade, { integration, body, idempotencyKey }) {
    const { since: fromMs, until: toMs, states = REPLAYABLE_STATES, cursor, dryRun } = body;
    const opened = await openInbox(facade, integration, body.subscription);
    const sorted = [...new Set(states)].toSorted();
    const selection = { fromMs, toMs, states: sorted, ...(cursor === undefined ? {} : { cursor }) };
    if (dryRun !== true) return startReplay(facade, integration, opened, selection, idempotencyKey);
    const told = await fromRedis(facade.replays.price(opened.inbox, selection));
    if (told.answer !== 'OK') throw inboxRefusal(facade, opened, told.answer);
    const { events, tokens } = told;
    return { status: 200, body: { events: events.length, tokens, nextCursor: told.cursor ?? null } };
  },
});

const getReplay = defineRoute({
  method: 'GET',
  path: '/waas/integrations/{integration}/replays/{replay}',
  access: 'recipient',
  operation: 'getReplay',
  tag: 'Inbox',
  summary: 'Read the progress of a replay',
  answers: { 200: { description: 'The replay.', schema: ReplayEntry } },
  problems: ['unknown_resource'],
  async handle(facade, { integration, params }) {
    const found = await fromRedis(facade.replays.read(payerOf(integration), params.replay));
    if (found?.inbox.integration !== integration.publicId) {
      throw new Refusal('unknown_resource', 'The integration does not have a replay with this id.');
    }
    return { status: 200, body: replayEntry(found.inbox.sub, found.replay) };
  },
});

export const REPLAY_ROUTES = [replayEvent, replayEvents, getReplay];
