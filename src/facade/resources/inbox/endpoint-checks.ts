import { z } from 'zod';
import { publicEventId } from '../../../core/ids/public-event-id.ts';
import { Refusal } from '../../../http/refusal.ts';
import { PATH_PARAMETERS } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { instant } from './events.ts';
import { openInbox, refusalOf } from './inbox-access.ts';

const SentTest = z.object({ id: PATH_PARAMETERS.event }).meta({ id: 'SentTest' });

const Recover = z
  .strictObject({
    since: instant('Events that were accepted then or later'),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor of the call before.' }),
  })
  .meta({ id: 'Recover' });

const Recovered = z
  .object({
    count: z.int().meta({ description: 'Deliveries that this call has made due.' }),
    nextCursor: z.string().nullable().meta({ description: 'Not null: call again with it, there are more.' }),
  })
  .meta({ id: 'Recovered' });

/** Seconds after which one of the tests that are open has ended, unless the endpoint is very slow. */
const TESTS_END_AFTER_SECONDS = '15';

const sendTest = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/test',
  access: 'recipient',
  operation: 'sendTestEvent',
  tag: 'Receiving',
  summary: 'Send a test event to the endpoint',
  description:
    'One attempt, of type sluice.test, signed as every delivery is, through the same dispatcher; free, and no event of the producer: it needs no activation, waits for nothing and holds up nothing. The event of the answer tells how it went.',
  dataPlane: true,
  answers: { 202: { description: 'It is on its way; read the event to see what came of it.', schema: SentTest } },
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
        // One that is refused is not told to the data plane.
        if (opened.subscription.spec.endpoint === undefined) throw new Refusal('no_endpoint');
        throw new Refusal('subscription_not_live', 'Its endpoint may not be called: its status says why.');
      case 'HELD':
        throw new Refusal('subscription_not_live', 'Its endpoint may not be called: its status says why.');
      case 'MANY':
        throw new Refusal('rate_limited', {
          detail: 'Ten tests of this endpoint are under way. Wait for them.',
          headers: { 'retry-after': TESTS_END_AFTER_SECONDS },
        });
      default:
        throw refusalOf(facade, opened, sent.answer);
    }
  },
});

const recover = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/subscriptions/{subscription}/recover',
  access: 'recipient',
  operation: 'recoverEvents',
  tag: 'Receiving',
  summary: 'Let what failed come at once',
  description:
    'After the endpoint was away: deliveries that wait for a retry are due now, and dead letters are open again with all their retries before them, each in its place in the order of its group key. Free: these are retries, no replays.',
  body: Recover,
  dataPlane: true,
  answers: { 202: { description: 'They are due.', schema: Recovered } },
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
    if (recovered.answer !== 'OK') throw refusalOf(facade, opened, recovered.answer);
    return { status: 202, body: { count: recovered.recovered, nextCursor: recovered.cursor ?? null } };
  },
});

export const ENDPOINT_CHECK_ROUTES = [sendTest, recover];
