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
    since: instant('Returns only events accepted at or after this time'),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor of the previous call.' }),
  })
  .meta({ id: 'Recover' });

const Recovered = z
  .object({
    count: z.int().meta({ description: 'The number of deliveries that this call made due.' }),
    nextCursor: z.string().nullable().meta({
      description:
        'If the value is not null, there are more deliveries. To continue, repeat the call with this cursor.',
    }),
  })
  .meta({ id: 'Recovered' });

/** Number of seconds until one of the running tests has probably ended. */
const TESTS_END_AFTER_SECONDS = '15';

const sendTest = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/test',
  access: 'recipient',
  operation: 'sendTestEvent',
  tag: 'Receiving',
  summary: 'Send a test event to the endpoint',
  description:
    'Sends a test event of type sluice.test to the endpoint in a single attempt. The dispatcher processes and signs the event like any other delivery. Test events are free and do not require an activation. They do not wait for other events and do not delay them. To get the result, read the returned event.',
  dataPlane: true,
  answers: { 202: { description: 'The test event is queued. To get the result, read the event.', schema: SentTest } },
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
        // Refused endpoints aren't passed to the data plane, so they appear to be missing.
        if (opened.subscription.spec.endpoint === undefined) throw new Refusal('no_endpoint');
        throw new Refusal(
          'subscription_not_live',
          'The endpoint is not allowed. For the reason, see the status of the subscription.',
        );
      case 'HELD':
        throw new Refusal(
          'subscription_not_live',
          'The endpoint is not allowed. For the reason, see the status of the subscription.',
        );
      case 'MANY':
        throw new Refusal('rate_limited', {
          detail: 'There are already ten open test events for this endpoint. Wait until they end.',
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
    'You can use this call after an outage of your endpoint. Deliveries that wait for a retry become due immediately. Dead letters are opened again with a full retry schedule and keep their position in the order of their group key. This call is free because these are retries and not replays.',
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
