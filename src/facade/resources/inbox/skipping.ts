import { z } from 'zod';
import { groupKey } from '../../../api/group-key.ts';
import { cursorOf, type ListName } from '../../../core/ids/list-cursor.ts';
import { Refusal, refuseBecause } from '../../../http/refusal.ts';
import { PATH_PARAMETERS } from '../../contract/fields.ts';
import { positionOf } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { openEvent } from './inbox-access.ts';

const ReplayOf = z.strictObject({
  replayId: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'must be 1 to 64 letters, digits, _ and -')
    .optional()
    .meta({ description: 'The replay to skip. Defaults to the first delivery.' }),
});

const skipEvent = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/events/{event}/skip',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'skipEvent',
  tag: 'Inbox',
  summary: 'Skip an event',
  description:
    "Ends an event's delivery so that events waiting for it can be delivered. Skipping is free of charge. An event skipped during an attempt stays skipped, whatever the attempt's result. You can replay skipped events.",
  body: ReplayOf.meta({ id: 'SkipEvent' }),
  bodyOptional: true,
  dataPlane: true,
  answers: { 204: { description: 'The event has been skipped.' } },
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
    upTo: PATH_PARAMETERS.event.meta({ description: 'The last event to skip.' }),
    groupKey: groupKey().optional().meta({ description: 'Only skip events with this group key.' }),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor returned by the previous request.' }),
  })
  .meta({ id: 'SkipEvents' });

const Skipped = z
  .object({
    skipped: z.int().meta({ description: 'The number of events that were skipped.' }),
    nextCursor: z.string().nullable().meta({
      description:
        'A cursor for the remaining deliveries, or null if there are none. To continue, repeat the request with this cursor.',
    }),
  })
  .meta({ id: 'SkippedEvents' });

/** The maximum number of steps per call. Each step skips up to 200 events. */
const SKIPS_AT_ONCE = 50;
/** The number of points for each additional step. */
const STEP_POINTS = 4;

const skipEvents = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/skip',
  access: 'recipient',
  scope: 'waas:write',
  operation: 'skipEvents',
  tag: 'Inbox',
  summary: 'Skip all open events up to a given event',
  description:
    'Skips all open events of the subscription up to and including the given event. You can limit the call to a single group key. Skipping is free of charge. Replays are not affected. Every additional 200 events cost 4 more points. Without enough points, the request ends early and returns a `nextCursor`.',
  body: SkipMany,
  dataPlane: true,
  cost: 10,
  answers: { 200: { description: 'The events have been skipped.', schema: Skipped } },
  problems: ['unknown_event', 'malformed_cursor'],
  async handle(facade, { integration, body, spend }) {
    const { id, inbox, ref } = await openEvent(facade, integration, body.upTo);
    const list: ListName = ['skip', id, body.groupKey];
    let cursor = positionOf(list, body.cursor);
    let skipped = 0;
    for (let steps = 0; steps < SKIPS_AT_ONCE; steps++) {
      const step = await fromRedis(facade.operations.skipUpTo(inbox, ref, { groupKey: body.groupKey, cursor }));
      if (step.answer === 'BAD_CURSOR') throw new Refusal('malformed_cursor');
      if (step.answer !== 'OK') throw new Refusal('unknown_event');
      skipped += step.skipped;
      cursor = step.cursor;
      if (cursor === undefined || !spend(STEP_POINTS)) break;
    }
    return { status: 200, body: { skipped, nextCursor: cursorOf(list, cursor) } };
  },
});

export const SKIP_ROUTES = [skipEvent, skipEvents];
