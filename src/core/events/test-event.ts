import { publicEventId } from '../ids/public-event-id.ts';
import { refMs, refOfStreamId } from '../ids/refs.ts';
import type { EventMeta } from './event-meta.ts';

/** The type of a test event that a partner sends to its endpoint. */
const TEST_EVENT_TYPE = 'sluice.test';

/** A sequence that queues do not use. It would require 33 million events in one millisecond. */
const FIRST_TEST_SEQUENCE = 2 ** 25 - 32;
/** Such a sequence in a ref, without its last character. */
const TEST_MARK = 'zzzz';
const MARK_AT = 10;

/**
 * Returns the ref of a test event requested at `nowMs`. The `number` (0 to 31) distinguishes test events in the same
 * millisecond.
 */
export function testRef(nowMs: number, number: number): string {
  return refOfStreamId(`${Math.floor(nowMs)}-${FIRST_TEST_SEQUENCE + (number % 32)}`);
}

/**
 * Returns whether a ref belongs to a test event. Test events are not stored in a queue, because they are derived from
 * their ref.
 */
export function isTestRef(ref: string): boolean {
  return ref.startsWith(TEST_MARK, MARK_AT);
}

/** Creates a test event from its ref in the format in which it is signed and sent. Test events are not stored. */
export function testEvent(ref: string, subscription: string): { readonly meta: EventMeta; readonly body: Buffer } {
  const time = refMs(ref);
  const timestamp = new Date(time).toISOString();
  const data = { subscription, message: 'This is a test of your endpoint. It was not sent by a producer.' };
  return {
    meta: {
      id: publicEventId(ref, subscription),
      type: TEST_EVENT_TYPE,
      groupKey: '',
      time,
      contentType: 'application/json',
      source: `/subscriptions/${subscription}`,
    },
    body: Buffer.from(JSON.stringify({ type: TEST_EVENT_TYPE, timestamp, data })),
  };
}
