import { z } from 'zod';
import { forwardedHeaderName, headerName } from './header-names.ts';
import { atomicList } from './lists.ts';

/**
 * Request headers read by ingress for a stream without `contextHeaders`. The first header that is present will be used,
 * and ingress creates an `evt_` id if there is no event id. These can't be schema defaults, because server-side apply
 * would assign the fields of a schema default to the first manager.
 */
export const CONTEXT_HEADER_DEFAULTS = {
  eventType: ['x-sluice-event-type', 'ce-type', 'webhook-event'],
  groupKey: ['x-sluice-group-key', 'ce-partitionkey'],
  eventId: ['webhook-id', 'ce-id', 'idempotency-key'],
  forward: [],
} as const satisfies Record<string, readonly string[]>;

function described(list: readonly string[]): string {
  return `Defaults to ${list.join(', ')}. If the list is empty, no header is read.`;
}

export const ContextHeaders = z
  .object({
    eventType: atomicList(headerName().describe('The name of a request header. Header names are not case-sensitive.'), {
      max: 8,
    })
      .describe(
        `A list of headers that can contain the event type. Ingress uses the first header that is present. ${described(CONTEXT_HEADER_DEFAULTS.eventType)}`,
      )
      .optional(),
    groupKey: atomicList(headerName().describe('The name of a request header. Header names are not case-sensitive.'), {
      max: 8,
    })
      .describe(
        `A list of headers that can contain the group key. Ingress uses the first header that is present. If an event does not have a group key, it is not routed. ${described(CONTEXT_HEADER_DEFAULTS.groupKey)}`,
      )
      .optional(),
    eventId: atomicList(headerName().describe('The name of a request header. Header names are not case-sensitive.'), {
      max: 8,
    })
      .describe(
        `A list of headers that can contain the event id. Ingress uses the first header that is present. If an id is repeated within 24 hours, ingress drops the event. If the request does not have an id, ingress creates one. ${described(CONTEXT_HEADER_DEFAULTS.eventId)}`,
      )
      .optional(),
    forward: atomicList(
      forwardedHeaderName().describe('The name of a request header. Header names are not case-sensitive.'),
      { max: 32 },
    )
      .describe(
        'A list of additional headers that are stored with the event and forwarded to receivers. Defaults to an empty list.',
      )
      .optional(),
  })
  .describe(
    'The request headers that ingress reads from an event. You do not need to set this field for CloudEvents in structured mode.',
  );
export type ContextHeaders = z.infer<typeof ContextHeaders>;

/** Lowercase header names for each of the four uses, in the order they are read by ingress. */
interface HeaderChoice {
  readonly eventType: readonly string[];
  readonly groupKey: readonly string[];
  readonly eventId: readonly string[];
  readonly forward: readonly string[];
}

/**
 * Returns the headers that ingress reads for a stream, as unique lowercase names. If the stream doesn't list any,
 * returns the defaults.
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
