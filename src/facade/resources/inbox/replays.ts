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
import { type OpenInbox, openEvent, openInbox, refusalOf } from './inbox-access.ts';

const price = {
  events: z.int().meta({ description: 'Events that are replayed.' }),
  tokens: z.int().meta({ description: "What they cost, on the account of the integration's workspace." }),
};
const nextCursor = z
  .string()
  .nullable()
  .meta({ description: `Of a range with more than ${REPLAYED_AT_ONCE} events: where the next replay goes on.` });

const ReplayEntry = z
  .object({
    replayId: z.string().nullable().meta({ description: 'Its id; null where there was nothing to replay.' }),
    subscriptionPublicId: publicIdField('Subscription'),
    ...price,
    complete: z.boolean().meta({ description: 'Whether all of it is in the inbox. False: charged, and under way.' }),
    taken: z.int().meta({ description: 'Events that are in the inbox.' }),
    refunded: z.int().meta({ description: 'Tokens given back, for events that retention removed meanwhile.' }),
    nextCursor,
  })
  .meta({ id: 'Replay' });

const ReplayPrice = z.object({ ...price, nextCursor }).meta({ id: 'ReplayPrice' });

const ReplayRange = z
  .strictObject({
    subscription: publicIdField('Subscription').meta({ description: 'Of which subscription.' }),
    since: instant('Events that were accepted then or later'),
    until: instant('Events that were accepted before').meta({ example: '2099-12-31T00:00:00Z' }),
    states: z
      .array(z.enum(REPLAYABLE_STATES))
      .min(1)
      .optional()
      .meta({ description: `Events that ended so. Default all: ${REPLAYABLE_STATES.join(', ')}.` }),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor of the replay before.' }),
    dryRun: z.boolean().optional().meta({ description: 'True: tells count and price, and does nothing.' }),
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

/** The account that pays: that of the workspace that receives. */
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
        errors: [{ header: 'idempotency-key', detail: 'cannot be the id of a replay' }],
      });
    default:
      throw refusalOf(facade, opened, answer.answer);
  }
}

const CHARGED =
  'Costs the tokens of each event again, charged before anything is sent, and once: Idempotency-Key is the id of the replay. Without one the id follows from what is replayed, so that the same call again is the same replay; send a key to replay the same once more. Deliveries keep webhook-id and add webhook-replay.';
const REFUSED = [
  'insufficient_tokens',
  'stream_blocked',
  'subscription_not_live',
  'integration_not_active',
  'replay_conflict',
] as const;
const LOCATION = { Location: 'Path of the replay.' };

const replayEvent = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/events/{event}/replay',
  access: 'recipient',
  operation: 'replayEvent',
  tag: 'Inbox',
  summary: 'Let an event come again',
  description: CHARGED,
  bodyElsewhere: 'POST /waas/integrations/{integration}/replay takes a range, and dryRun to learn its price.',
  dataPlane: true,
  answers: { 202: { description: 'Charged, and on its way.', schema: ReplayEntry, headers: LOCATION } },
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
  summary: 'Let the events of a time come again, or tell what that costs',
  description: `In order; events whose group key is not active are left out. ${CHARGED}`,
  body: ReplayRange,
  dataPlane: true,
  answers: {
    202: { description: 'Charged, and on its way.', schema: ReplayEntry, headers: LOCATION },
    200: { description: 'Of a dry run: what it would bring and cost.', schema: ReplayPrice },
  },
  problems: ['unknown_resource', 'malformed_cursor', ...REFUSED],
  async handle(facade, { integration, body, idempotencyKey }) {
    const { since: fromMs, until: toMs, states = REPLAYABLE_STATES, cursor, dryRun } = body;
    const opened = await openInbox(facade, integration, body.subscription);
    const sorted = [...new Set(states)].toSorted();
    const selection = { fromMs, toMs, states: sorted, ...(cursor === undefined ? {} : { cursor }) };
    if (dryRun !== true) return startReplay(facade, integration, opened, selection, idempotencyKey);
    const told = await fromRedis(facade.replays.price(opened.inbox, selection));
    if (told.answer !== 'OK') throw refusalOf(facade, opened, told.answer);
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
  summary: 'Read how a replay stands',
  answers: { 200: { description: 'The replay.', schema: ReplayEntry } },
  problems: ['unknown_resource'],
  async handle(facade, { integration, params }) {
    const found = await fromRedis(facade.replays.read(payerOf(integration), params.replay));
    if (found?.inbox.integration !== integration.publicId) {
      throw new Refusal('unknown_resource', 'This integration has no such replay.');
    }
    return { status: 200, body: replayEntry(found.inbox.sub, found.replay) };
  },
});

export const REPLAY_ROUTES = [replayEvent, replayEvents, getReplay];
