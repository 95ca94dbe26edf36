import { z } from 'zod';
import { publicEventId } from '../../../core/ids/public-event-id.ts';
import { Refusal } from '../../../http/refusal.ts';
import { PATH_PARAMETERS } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { instant } from './events.ts';
import { inboxRefusal, openInbox } from './inbox-access.ts';

const SentTest = z.object({ id: PATH_PARAMETERS.event }).meta({ id: 'SentTest' });

const Recover = z
  .strictObject({
    since: instant('Only events accepted at or after this time'),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor of the previous call.' }),
  })
  .meta({ id: 'Recover' });

const Recovered = z
  .object({
    count: z.int().meta({ description: 'Deliveries that this call made due.' }),
    nextCursor: z
      .string()
      .nullable()
      .meta({ description: 'Not null: there are more; repeat the call with this cursor.' }),
  })
  .meta({ id: 'Recovered' });

/** Seconds until one of the open tests has ended, unless the endpoint is very slow. */
const TESTS_END_AFTER_SECONDS = '15';

const sendTest = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/test',
  access: 'recipient',
  operation: 'sendTestEvent',
  tag: 'Receiving',
  summary: 'Send a test event to the endpoint',
  description:
    'Makes one attempt with an event of type sluice.test. It goes through the dispatcher and is signed like any delivery. A test event is free, needs no activation, waits for no other event and delays none. Read the returned event for the result.',
  dataPlane: true,
  answers: { 202: { description: 'The test event is queued; read the event for the result.', schema: SentTest } },
  problems: ['unknown_resource', 'no_endpoint', 'stream_blocked', 'subscription_not_live', 'integration_not_active'],
  async handle(facade, { integration, params }) {
    const opened = await openInbox(facade, integration, params.subscription);
    const sent = await fromRedis(facade.recovery.sendTest(opened.inbox));
    switch (sent.answer) {
      case 'OK': {
        const id = publicEventId(sent.ref, opened.id);
        const location = `/waas/integrations/${integration.publicId}/events/${id}`;
        return { status: 202, body: { id }, headers: { location } };
      }
      case 'PULLED':
        // The data plane does not get a refused endpoint: it looks as if there were none.
        if (opened.subscription.spec.endpoint === undefined) throw new Refusal('no_endpoint');
        throw new Refusal('subscription_not_live', 'Its endpoint may not be called: see the reason in its status.');
      case 'HELD':
        throw new Refusal('subscription_not_live', 'Its endpoint may not be called: see the reason in its status.');
      case 'MANY':
        throw new Refusal('rate_limited', {
          detail: 'Ten test events for this endpoint are open. Wait until they have ended.',
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
  operation: 'recoverEvents',
  tag: 'Receiving',
  summary: 'Retry failed deliveries now',
  description:
    'Use it after an outage of the endpoint. Deliveries that wait for a retry become due now. Dead letters are open again with a full retry schedule, each at its place in the order of its group key. Free: these are retries, not replays.',
  body: Recover,
  dataPlane: true,
  answers: { 202: { description: 'The deliveries are due.', schema: Recovered } },
  problems: [
    'unknown_resource',
    'malformed_cursor',
    'stream_blocked',
    'subscription_not_live',
    'integration_not_active',
  ],
  async handle(facade, { integration, params, body }) {
    const opened = await openInbox(facade, integration, params.subscription);
    const { since: sinceMs, cursor } = body;
    const recovered = await fromRedis(facade.recovery.recover(opened.inbox, { sinceMs, cursor }));
    if (recovered.answer !== 'OK') throw inboxRefusal(facade, opened, recovered.answer);
    return { status: 202, body: { count: recovered.recovered, nextCursor: recovered.cursor ?? null } };
  },
});

export const ENDPOINT_CHECK_ROUTES = [sendTest, recover];
