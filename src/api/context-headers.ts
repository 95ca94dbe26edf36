import { z } from 'zod';
import { forwardedHeaderName, headerName } from './header-names.ts';
import { atomicList } from './lists.ts';

/**
 * Request headers that ingress reads for a stream without `contextHeaders`. The first header present wins. Without a
 * header for the event id, ingress creates an `evt_` id. These are not schema defaults, because server-side apply would
 * give the fields of a schema default to the first manager.
 */
export const CONTEXT_HEADER_DEFAULTS = {
  eventType: ['x-sluice-event-type', 'ce-type', 'webhook-event'],
  groupKey: ['x-sluice-group-key', 'ce-partitionkey'],
  eventId: ['webhook-id', 'ce-id', 'idempotency-key'],
  forward: [],
} as const satisfies Record<string, readonly string[]>;

function described(list: readonly string[]): string {
  return `Absent: ${list.join(', ')}. Empty: reads none.`;
}

export const ContextHeaders = z
  .object({
    eventType: atomicList(headerName().describe('Name of a request header, in any case.'), { max: 8 })
      .describe(
        `Headers that may hold the event type. The first one present wins. ${described(CONTEXT_HEADER_DEFAULTS.eventType)}`,
      )
      .optional(),
    groupKey: atomicList(headerName().describe('Name of a request header, in any case.'), { max: 8 })
      .describe(
        `Headers that may hold the group key. The first one present wins. An event without a group key is not routed. ${described(CONTEXT_HEADER_DEFAULTS.groupKey)}`,
      )
      .optional(),
    eventId: atomicList(headerName().describe('Name of a request header, in any case.'), { max: 8 })
      .describe(
        `Headers that may hold the event id. The first one present wins. Ingress drops repeats of an id within 24 hours, and creates an id if the request has none. ${described(CONTEXT_HEADER_DEFAULTS.eventId)}`,
      )
      .optional(),
    forward: atomicList(forwardedHeaderName().describe('Name of a request header, in any case.'), { max: 32 })
      .describe('Other headers to store with the event and forward to receivers. Absent: none.')
      .optional(),
  })
  .describe('Request headers that ingress reads from an event. CloudEvents in structured mode need none.');
export type ContextHeaders = z.infer<typeof ContextHeaders>;

/** Header names in lower case for each of the four uses, in the order in which ingress tries them. */
interface HeaderChoice {
  readonly eventType: readonly string[];
  readonly groupKey: readonly string[];
  readonly eventId: readonly string[];
  readonly forward: readonly string[];
}

/** Returns the headers that ingress reads for a stream: those it lists, in lower case and once, else the defaults. */
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
