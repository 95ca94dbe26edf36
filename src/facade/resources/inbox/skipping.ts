import { z } from 'zod';
import { Refusal, refuseBecause } from '../../../http/refusal.ts';
import { PATH_PARAMETERS } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { openEvent } from './inbox-access.ts';

const ReplayOf = z.strictObject({
  replayId: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'has to be 1 to 64 letters, digits, _ and -')
    .optional()
    .meta({ description: 'Of which replay. Absent: the first delivery.' }),
});

const skipEvent = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/events/{event}/skip',
  access: 'recipient',
  operation: 'skipEvent',
  tag: 'Inbox',
  summary: 'Skip an event',
  description:
    'Ends it undelivered; what waits behind it goes on. Free. A skip during an attempt wins, whatever that brings. A replay lets a skipped event come again.',
  body: ReplayOf.meta({ id: 'SkipEvent' }),
  bodyOptional: true,
  dataPlane: true,
  answers: { 204: { description: 'It is skipped.' } },
  problems: ['unknown_event', 'event_ended'],
  async handle(facade, { integration, params, body }) {
    const { inbox, ref } = await openEvent(facade, integration, params.event);
    const answer = await fromRedis(facade.operations.skip(inbox, { ref, replayId: body?.replayId }));
    if (answer === 'UNKNOWN' || answer === 'GONE') throw new Refusal('unknown_event');
    if (answer !== 'OK' && answer !== 'skipped') throw refuseBecause('event_ended', `It is ${answer}.`);
    return { status: 204 };
  },
});

const SkipMany = z
  .strictObject({
    upTo: PATH_PARAMETERS.event.meta({ description: 'Id of the last event to be skipped.' }),
    groupKey: z.string().min(1).max(256).optional().meta({ description: 'Only events of this group key.' }),
    cursor: z.string().max(1_024).optional().meta({ description: 'The nextCursor of the call before.' }),
  })
  .meta({ id: 'SkipEvents' });

const Skipped = z
  .object({
    skipped: z.int().meta({ description: 'Events that this call has skipped.' }),
    nextCursor: z.string().nullable().meta({ description: 'Not null: call again with it, there are more.' }),
  })
  .meta({ id: 'SkippedEvents' });

/** Steps of 200 events that one call makes. */
const SKIPS_AT_ONCE = 50;

const skipEvents = defineRoute({
  method: 'POST',
  path: '/waas/integrations/{integration}/skip',
  access: 'recipient',
  operation: 'skipEvents',
  tag: 'Inbox',
  summary: 'Skip all open events up to one',
  description:
    'Of the subscription of that event, and with it; of one group key, if one is given. Free. Replays are left alone.',
  body: SkipMany,
  dataPlane: true,
  answers: { 200: { description: 'They are skipped.', schema: Skipped } },
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
