import { z } from 'zod';
import { cursorOf, type ListName } from '../../../core/ids/list-cursor.ts';
import { publicEventId } from '../../../core/ids/public-event-id.ts';
import { Refusal } from '../../../http/refusal.ts';
import { PATH_PARAMETERS } from '../../contract/fields.ts';
import { positionOf } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { instant } from './events.ts';
import { inboxRefusal, type OpenInbox, openInbox, whyNotLive } from './inbox-access.ts';

const SentTest = z.object({ id: PATH_PARAMETERS.event }).meta({ id: 'SentTest' });

const Recover = z
  .strictObject({
    since: instant('Only include events that were accepted at or after this time'),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor returned by the previous request.' }),
  })
  .meta({ id: 'Recover' });

const Recovered = z
  .object({
    count: z.int().meta({ description: 'The number of deliveries that are now due because of this request.' }),
    replayRequired: z.int().meta({
      description:
        'The number of dead letters that were not changed because they were recovered before or are replays. You can replay these events to receive them again.',
    }),
    nextCursor: z.string().nullable().meta({
      description:
        'A cursor for the remaining deliveries, or null if there are none. To continue, repeat the request with this cursor.',
    }),
  })
  .meta({ id: 'Recovered' });

/** The number of points for each additional 1,000 deliveries. */
const PAGE_POINTS = 30;
/** The number of seconds after which one of the running tests has probably ended. */
const TESTS_END_AFTER_SECONDS = '15';

/** Returns the problem for an endpoint to which nothing can be sent. */
function heldRefusal(opened: Pick<OpenInbox, 'subscription'>): Refusal {
  const detail =
    opened.subscription.status?.endpoint?.disabledAt === undefined
      ? whyNotLive(opened, 'Nothing can be sent to the endpoint. For the reason, see the status of the subscription.')
      : 'The endpoint is disabled. To enable it, use POST /waas/integrations/{integration}/subscriptions/{subscription}/enable.';
  return new Refusal('subscription_not_live', detail);
}

const sendTest = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/test',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'sendTestEvent',
  tag: 'Receiving',
  summary: 'Send a test event to the endpoint',
  description:
    "Sends an event of type sluice.test to the endpoint, using a single attempt. The dispatcher processes and signs a test event in the same way as other deliveries. Test events are free of charge and don't require an activation. Test events neither delay other events nor wait for them. To find out the result, retrieve the returned event.",
  dataPlane: true,
  idempotency: 'answer',
  answers: {
    202: {
      description: 'The test event has been queued. To find out the result, retrieve the event.',
      schema: SentTest,
    },
  },
  problems: ['unknown_resource', 'no_endpoint', 'stream_blocked', 'subscription_not_live', 'integration_not_active'],
  async handle(facade, { integration, params, seed }) {
    const opened = await openInbox(facade, integration, params.subscription);
    const sent = await fromRedis(facade.recovery.sendTest(opened.inbox, seed));
    switch (sent.answer) {
      case 'OK': {
        const id = publicEventId(sent.ref, opened.id);
        const location = `/waas/integrations/${integration.publicId}/events/${id}`;
        return { status: 202, body: { id }, headers: { location } };
      }
      case 'PULLED':
        // Refused endpoints aren't passed to the data plane, so they appear to be missing.
        if (opened.subscription.spec.endpoint === undefined) throw new Refusal('no_endpoint');
        throw heldRefusal(opened);
      case 'HELD':
        throw heldRefusal(opened);
      case 'MANY':
        throw new Refusal('rate_limited', {
          detail:
            'There are already ten open test events for this endpoint. Wait until some of these events have ended.',
          headers: { 'retry-after': TESTS_END_AFTER_SECONDS },
        });
      default:
        throw inboxRefusal(facade, opened, sent.answer);
    }
  },
});

const recover = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/recover',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'recoverEvents',
  tag: 'Receiving',
  summary: 'Retry failed deliveries now',
  description: [
    'Sends events again after an outage of your endpoint, free of charge. Deliveries waiting for a retry become due immediately. Dead letters are reopened with the full retry schedule and keep their position within the order of their group key.',
    'Each dead letter can only be recovered once: if it fails again, or if it is a replay, it stays dead and counts in `replayRequired`. To receive such events, list them with GET /waas/integrations/{integration}/events and `state=dead`, and replay them with POST /waas/integrations/{integration}/events/{event}/replay. To replay all dead first deliveries of a time range, use POST /waas/integrations/{integration}/replay with `"states": ["dead"]`.',
    'Every additional 1,000 deliveries cost 30 more points. Without enough points, the request ends early and returns a `nextCursor`.',
  ].join('\n\n'),
  body: Recover,
  dataPlane: true,
  idempotency: 'answer',
  cost: 10,
  answers: { 202: { description: 'The deliveries are now due.', schema: Recovered } },
  problems: [
    'unknown_resource',
    'malformed_cursor',
    'stream_blocked',
    'subscription_not_live',
    'integration_not_active',
  ],
  async handle(facade, { integration, params, body, spend }) {
    const opened = await openInbox(facade, integration, params.subscription);
    const list: ListName = ['recover', opened.id];
    const cursor = positionOf(list, body.cursor);
    const recovered = await fromRedis(
      facade.recovery.recover(opened.inbox, { sinceMs: body.since, cursor, mayGoOn: () => spend(PAGE_POINTS) }),
    );
    if (recovered.answer !== 'OK') throw inboxRefusal(facade, opened, recovered.answer);
    const { recovered: count, replayRequired, cursor: next } = recovered;
    return { status: 202, body: { count, replayRequired, nextCursor: cursorOf(list, next) } };
  },
});

export const ENDPOINT_CHECK_ROUTES = [sendTest, recover];
