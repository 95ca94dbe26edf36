import { z } from 'zod';
import { parsePublicEventId } from '../../../core/ids/public-event-id.ts';
import type { ProblemError } from '../../../core/problems/problem.ts';
import { Refusal } from '../../../http/refusal.ts';
import { PATH_PARAMETERS, publicIdField } from '../../contract/fields.ts';
import { longPoll } from '../../contract/long-poll.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { PulledEntry, pulledEntry } from './event-views.ts';
import { inboxRefusal, openInbox } from './inbox-access.ts';

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
      .meta({ description: `The maximum number of events, from 1 to ${MOST}. Defaults to ${DEFAULT}.` }),
    all: z.boolean().optional().meta({
      description:
        'If false, the call returns only the first event of each group key. If true, it also returns later events in order, and you must acknowledge them in this order. Defaults to false.',
    }),
    waitSeconds: z
      .int()
      .min(0)
      .max(30)
      .optional()
      .meta({ description: 'The number of seconds to wait if there are no events, from 0 to 30. Defaults to 0.' }),
  })
  .meta({ id: 'Pull' });

const Pulled = z
  .object({
    data: z
      .array(PulledEntry)
      .meta({ description: 'The events, with at most about 4 MiB. The event that has waited the longest is first.' }),
    more: z.boolean().meta({
      description: 'Whether there can be more events. To get them, acknowledge the current events and then pull again.',
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
            .regex(/^[\w-]{1,64}$/)
            .nullable()
            .optional()
            .meta({ description: 'The replayId of the pulled event, if it has one.' }),
        }),
      )
      .min(1)
      .max(MOST)
      .meta({ description: `The events to acknowledge, with 1 to ${MOST} entries in any order.` }),
  })
  .meta({ id: 'Acknowledge' });

const pull = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/pull',
  access: 'recipient',
  operation: 'pullEvents',
  tag: 'Inbox',
  summary: 'Pull events',
  description:
    'Returns events of a subscription that does not have an endpoint. Pulling does not remove events, so the same events are returned until you acknowledge them. This call is free.',
  body: Pull,
  dataPlane: true,
  answers: { 200: { description: 'The events and their bodies.', schema: Pulled } },
  problems: ['unknown_resource', 'has_endpoint', 'stream_blocked', 'subscription_not_live', 'integration_not_active'],
  async handle(facade, { integration, body, signal }) {
    const { limit = DEFAULT, all = false, waitSeconds = 0 } = body;
    const opened = await openInbox(facade, integration, body.subscription);
    const pulled = await longPoll(
      { clock: facade.clock, signal, waitMs: waitSeconds * 1_000 },
      async () => {
        const answer = await fromRedis(facade.operations.pull(opened.inbox, { limit, all }));
        if (answer.answer === 'PUSHED') throw new Refusal('has_endpoint');
        if (answer.answer !== 'OK') throw inboxRefusal(facade, opened, answer.answer);
        return answer;
      },
      ({ events }) => events.length > 0,
    );
    const data = pulled.events.map(event => pulledEntry(event, opened.id));
    return { status: 200, body: { data, more: pulled.more } };
  },
});

const acknowledge = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/acknowledge',
  access: 'recipient',
  operation: 'acknowledgeEvents',
  tag: 'Inbox',
  summary: 'Acknowledge pulled events',
  description:
    'Marks events as delivered. If some events cannot be acknowledged, `errors` lists them, and all other events are acknowledged. You can safely repeat this call.',
  body: Acknowledge,
  largeBody: true,
  dataPlane: true,
  answers: { 204: { description: 'All events are delivered.' } },
  problems: ['unknown_resource', 'has_endpoint', 'unknown_event', 'event_ended', 'subscription_not_live'],
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
