import { z } from 'zod';
import { forwardedHeaderName, headerName } from './header-names.ts';
import { atomicList } from './lists.ts';

/**
 * Where ingress reads what it needs to know of an event when a stream says nothing else; the first header that is
 * there wins. Without any of the last, ingress makes an `evt_` id. Defaults of the code, not of the schema: a schema
 * default would belong to whoever applied first.
 */
export const CONTEXT_HEADER_DEFAULTS = {
  eventType: ['x-sluice-event-type', 'ce-type', 'webhook-event'],
  groupKey: ['x-sluice-group-key', 'ce-partitionkey'],
  eventId: ['webhook-id', 'ce-id', 'idempotency-key'],
  forward: [],
} as const satisfies Record<string, readonly string[]>;

function described(list: readonly string[]): string {
  return `Absent: ${list.join(', ')}. Empty: none is read.`;
}

export const ContextHeaders = z
  .object({
    eventType: atomicList(headerName().describe('Name of a request header, in any case.'), { max: 8 })
      .describe(
        `Headers that may hold the event type; the first one present wins. ${described(CONTEXT_HEADER_DEFAULTS.eventType)}`,
      )
      .optional(),
    groupKey: atomicList(headerName().describe('Name of a request header, in any case.'), { max: 8 })
      .describe(
        `Headers that may hold the group key; the first one present wins. An event without a group key is routed to nobody. ${described(CONTEXT_HEADER_DEFAULTS.groupKey)}`,
      )
      .optional(),
    eventId: atomicList(headerName().describe('Name of a request header, in any case.'), { max: 8 })
      .describe(
        `Headers that may hold the event id, by which repeats within 24 hours are recognised; the first one present wins, and without one a new id is made. ${described(CONTEXT_HEADER_DEFAULTS.eventId)}`,
      )
      .optional(),
    forward: atomicList(forwardedHeaderName().describe('Name of a request header, in any case.'), { max: 32 })
      .describe('Further headers that are stored with the event and passed on to receivers. Absent: none.')
      .optional(),
  })
  .describe(
    'Which request headers tell ingress about an event. CloudEvents in structured mode are understood without it.',
  );
export type ContextHeaders = z.infer<typeof ContextHeaders>;

/** Header names in lower case, in the order in which they are tried, for each of the four uses. */
export interface HeaderChoice {
  readonly eventType: readonly string[];
  readonly groupKey: readonly string[];
  readonly eventId: readonly string[];
  readonly forward: readonly string[];
}

/** The headers that ingress reads for a stream: what the stream lists, in lower case and once, else the defaults. */
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
