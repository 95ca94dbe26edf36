import { z } from 'zod';
import { forwardedHeaderName, readHeaderName } from './header-names.ts';
import { atomicList } from './lists.ts';

/**
 * The request headers read by ingress for streams without `contextHeaders`. The first header that is present is used,
 * and ingress generates an `evt_` id if there is no event id. The default lists can't be schema defaults because
 * server-side apply would assign the fields of a schema default to the first manager.
 */
export const CONTEXT_HEADER_DEFAULTS = {
  eventType: ['x-sluice-event-type', 'ce-type', 'webhook-event'],
  groupKey: ['x-sluice-group-key', 'ce-partitionkey'],
  eventId: ['webhook-id', 'ce-id', 'idempotency-key'],
  forward: [],
} as const satisfies Record<string, readonly string[]>;

function described(list: readonly string[]): string {
  return `Defaults to ${list.join(', ')}. To ignore all headers, set this to an empty list.`;
}

export const ContextHeaders = z
  .object({
    eventType: atomicList(readHeaderName().describe('The name of a request header. Not case-sensitive.'), {
      max: 8,
    })
      .describe(
        `The request headers that may contain the event type, in order of precedence. ${described(CONTEXT_HEADER_DEFAULTS.eventType)}`,
      )
      .optional(),
    groupKey: atomicList(readHeaderName().describe('The name of a request header. Not case-sensitive.'), {
      max: 8,
    })
      .describe(
        `The request headers that may contain the group key, in order of precedence. Events without a group key are not routed. ${described(CONTEXT_HEADER_DEFAULTS.groupKey)}`,
      )
      .optional(),
    eventId: atomicList(readHeaderName().describe('The name of a request header. Not case-sensitive.'), {
      max: 8,
    })
      .describe(
        `The request headers that may contain the event id, in order of precedence. Without any of them, ingress generates an id. An event that repeats an id within 24 hours is a duplicate and is not stored. ${described(CONTEXT_HEADER_DEFAULTS.eventId)}`,
      )
      .optional(),
    forward: atomicList(forwardedHeaderName().describe('The name of a request header. Not case-sensitive.'), {
      max: 32,
    })
      .describe(
        'Additional request headers to store with the event and forward to receivers. Defaults to an empty list.',
      )
      .optional(),
  })
  .describe(
    "Configures which request headers ingress reads. For CloudEvents in structured mode, names that start with ce- refer to the event's attributes. A list replaces the defaults: add ce-type, ce-partitionkey, or ce-id to it to keep reading these attributes.",
  );
export type ContextHeaders = z.infer<typeof ContextHeaders>;

/** The lowercase header names for each of the four uses, in the order in which they are read by ingress. */
interface HeaderChoice {
  readonly eventType: readonly string[];
  readonly groupKey: readonly string[];
  readonly eventId: readonly string[];
  readonly forward: readonly string[];
}

/**
 * Returns the headers that ingress should read for the given stream, as unique lowercase names. If the stream doesn't
 * list any, returns the defaults.
 */
export function chooseHeaders(contextHeaders: ContextHeaders | undefined): HeaderChoice {
  const choose = (use: keyof HeaderChoice) => [
    ...new Set((contextHeaders?.[use] ?? CONTEXT_HEADER_DEFAULTS[use]).map(name => name.toLowerCase())),
  ];
  return {
    eventType: choose('eventType'),
    groupKey: choose('groupKey'),
    eventId: choose('eventId'),
    forward: choose('forward'),
  };
}
