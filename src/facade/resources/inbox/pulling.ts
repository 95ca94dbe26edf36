import { z } from 'zod';
import { parsePublicEventId } from '../../../core/ids/public-event-id.ts';
import type { ProblemError } from '../../../core/problems/problem.ts';
import { Refusal } from '../../../http/refusal.ts';
import { PATH_PARAMETERS, publicIdField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { PulledEntry, pulledEntry } from './event-views.ts';
import { assertPulled, inboxRefusal, openInbox } from './inbox-access.ts';

const MOST = 250;
const DEFAULT = 50;

const Pull = z
  .strictObject({
    subscription: publicIdField('Subscription').meta({ description: 'A subscription without an endpoint.' }),
    limit: z
      .int()
      .min(1)
      .max(MOST)
      .optional()
      .meta({ description: `The maximum number of events to return, between 1 and ${MOST}. Defaults to ${DEFAULT}.` }),
    all: z.boolean().optional().meta({
      description:
        'If true, the response can contain several events with the same group key, in order. Process them in this order: Sluice does not check the order in which you acknowledge events. If false, it contains at most one event for each group key. Defaults to false.',
    }),
    waitSeconds: z.int().min(0).max(30).optional().meta({
      description:
        'The number of seconds to wait if there are no events yet. Must be between 0 and 30. Defaults to 0. Each caller can have up to 16 concurrent calls waiting for events.',
    }),
  })
  .meta({ id: 'Pull' });

const Pulled = z
  .object({
    data: z.array(PulledEntry).meta({ description: 'The waiting events, oldest first. Limited to about 4 MiB.' }),
    more: z.boolean().meta({
      description: 'Indicates whether there may be more events. Acknowledge the returned events before you pull again.',
    }),
  })
  .meta({ id: 'PulledEvents' });

const Acknowledge = z
  .strictObject({
    subscription: publicIdField('Subscription').meta({ description: 'A subscription without an endpoint.' }),
    events: z
      .array(
        z.strictObject({
          id: PATH_PARAMETERS.event,
          replayId: z
            .string()
            .regex(/^[\w-]{1,64}$/, 'must be 1 to 64 letters, digits, _ and -')
            .nullable()
            .optional()
            .meta({ description: 'The replayId, if the event is part of a replay.' }),
        }),
      )
      .min(1)
      .max(MOST)
      .meta({ description: `A list of 1 to ${MOST} events to acknowledge, in any order.` }),
  })
  .meta({ id: 'Acknowledge' });

const pull = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/pull',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'pullEvents',
  tag: 'Inbox',
  summary: 'Pull events',
  description:
    'Returns waiting events for a subscription without an endpoint. Pulling an event does not remove it from the inbox, so you receive the same events again until you acknowledge them. After you remove an endpoint, you can only pull an event that was waiting for a retry when the retry is due. To pull them immediately, use POST /waas/integrations/{integration}/subscriptions/{subscription}/recover. Pulling and recovering are free of charge.',
  body: Pull,
  dataPlane: true,
  cost: 5,
  answers: { 200: { description: 'A list of events, including their bodies.', schema: Pulled } },
  problems: ['unknown_resource', 'has_endpoint', 'stream_blocked', 'subscription_not_live', 'integration_not_active'],
  async handle(facade, { integration, body, waitFor }) {
    const { limit = DEFAULT, all = false, waitSeconds = 0 } = body;
    const pulled = await waitFor(
      waitSeconds,
      async () => {
        // The subscription may be deleted during the wait.
        const opened = await openInbox(facade, integration, body.subscription);
        const answer = await fromRedis(facade.operations.pull(opened.inbox, { limit, all }));
        if (answer.answer === 'PUSHED') throw new Refusal('has_endpoint');
        if (answer.answer !== 'OK') throw inboxRefusal(facade, opened, answer.answer);
        await assertPulled(facade, opened);
        return answer;
      },
      ({ events }) => events.length > 0,
    );
    const data = pulled.events.map(event => pulledEntry(event, body.subscription));
    return { status: 200, body: { data, more: pulled.more } };
  },
});

const acknowledge = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/acknowledge',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'acknowledgeEvents',
  tag: 'Inbox',
  summary: 'Acknowledge pulled events',
  description:
    'Marks events as delivered. `errors` lists the events that could not be acknowledged. These events do not affect any others. You can safely repeat this request.',
  body: Acknowledge,
  largeBody: true,
  dataPlane: true,
  cost: 5,
  answers: { 204: { description: 'All events have been marked as delivered.' } },
  problems: [
    'unknown_resource',
    'has_endpoint',
    'unknown_event',
    'event_ended',
    'subscription_not_live',
    'integration_not_active',
  ],
  async handle(facade, { integration, body }) {
    const opened = await openInbox(facade, integration, body.subscription);
    const events = body.events.map(({ id, replayId }) => ({
      ...parsePublicEventId(id),
      replayId: replayId ?? undefined,
    }));
    const foreign = events.flatMap(({ subscription }, i): ProblemError[] =>
      subscription === opened.id ? [] : [{ pointer: `/events/${i}/id`, detail: 'belongs to another subscription' }],
    );
    if (foreign.length > 0) throw new Refusal('invalid_request', { errors: foreign });
    const deliveries = events.map(({ ref = '', replayId }) => ({ ref, replayId }));
    await assertPulled(facade, opened);
    const answer = await fromRedis(facade.operations.acknowledge(opened.inbox, deliveries));
    if (answer.answer !== 'OK') {
      throw answer.answer === 'PUSHED' ? new Refusal('has_endpoint') : inboxRefusal(facade, opened, answer.answer);
    }
    const errors = answer.answers.flatMap((word, i): ProblemError[] => {
      if (word === 'OK' || word === 'delivered') return [];
      return [{ pointer: `/events/${i}`, detail: word === 'UNKNOWN' ? 'is not in the inbox' : `is ${word}` }];
    });
    if (errors.length > 0)
      throw new Refusal(answer.answers.includes('UNKNOWN') ? 'unknown_event' : 'event_ended', { errors });
    return { status: 204 };
  },
});

export const PULL_ROUTES = [pull, acknowledge];
