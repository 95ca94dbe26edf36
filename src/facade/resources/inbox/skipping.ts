import { z } from 'zod';
import { Refusal, refuseBecause } from '../../../http/refusal.ts';
import { PATH_PARAMETERS } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { openEvent } from './inbox-access.ts';

const ReplayOf = z.strictObject({
  replayId: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'must be 1 to 64 letters, digits, _ and -')
    .optional()
    .meta({ description: 'The replay to skip. If this field is not set, the first delivery is skipped.' }),
});

const skipEvent = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/events/{event}/skip',
  access: 'recipient',
  operation: 'skipEvent',
  tag: 'Inbox',
  summary: 'Skip an event',
  description:
    'Ends the delivery of the event and releases the events that wait for it. This call is free. If you skip an event during an attempt, its state is skipped regardless of the result of the attempt. You can replay skipped events.',
  body: ReplayOf.meta({ id: 'SkipEvent' }),
  bodyOptional: true,
  dataPlane: true,
  answers: { 204: { description: 'The event is skipped.' } },
  problems: ['unknown_event', 'event_ended'],
  async handle(facade, { integration, params, body }) {
    const { inbox, ref } = await openEvent(facade, integration, params.event);
    const answer = await fromRedis(facade.operations.skip(inbox, { ref, replayId: body?.replayId }));
    if (answer === 'UNKNOWN' || answer === 'GONE') throw new Refusal('unknown_event');
    if (answer !== 'OK' && answer !== 'skipped') throw refuseBecause('event_ended', `The event is ${answer}.`);
    return { status: 204 };
  },
});

const SkipMany = z
  .strictObject({
    upTo: PATH_PARAMETERS.event.meta({ description: 'The id of the last event to skip.' }),
    groupKey: z.string().min(1).max(256).optional().meta({ description: 'Skips only events of this group key.' }),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor of the previous call.' }),
  })
  .meta({ id: 'SkipEvents' });

const Skipped = z
  .object({
    skipped: z.int().meta({ description: 'The number of events that this call skipped.' }),
    nextCursor: z.string().nullable().meta({
      description:
        'If the value is not null, there are more deliveries. To continue, repeat the call with this cursor.',
    }),
  })
  .meta({ id: 'SkippedEvents' });

/** Maximum number of steps per call. Up to 200 events are skipped in each step. */
const SKIPS_AT_ONCE = 50;

const skipEvents = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/skip',
  access: 'recipient',
  operation: 'skipEvents',
  tag: 'Inbox',
  summary: 'Skip all open events up to one',
  description:
    'Skips all open events of the subscription up to and including this event. You can limit the call to one group key. This call is free and does not skip replays.',
  body: SkipMany,
  dataPlane: true,
  answers: { 200: { description: 'The events are skipped.', schema: Skipped } },
  problems: ['unknown_event', 'malformed_cursor'],
  async handle(facade, { integration, body }) {
    const { groupKey } = body;
    const { inbox, ref } = await openEvent(facade, integration, body.upTo);
    let { cursor } = body;
    let skipped = 0;
    for (let steps = 0; steps < SKIPS_AT_ONCE; steps++) {
      const step = await fromRedis(facade.operations.skipUpTo(inbox, ref, { groupKey, cursor }));
      if (step.answer === 'BAD_CURSOR') throw new Refusal('malformed_cursor');
      if (step.answer !== 'OK') throw new Refusal('unknown_event');
      skipped += step.skipped;
      cursor = step.cursor;
      if (cursor === undefined) break;
    }
    return { status: 200, body: { skipped, nextCursor: cursor ?? null } };
  },
});

export const SKIP_ROUTES = [skipEvent, skipEvents];
