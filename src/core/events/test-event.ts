import { publicEventId } from '../ids/public-event-id.ts';
import { refMs, refOfStreamId } from '../ids/refs.ts';
import type { EventMeta } from './event-meta.ts';

/** Type of a test event sent by a partner to its endpoint. */
const TEST_EVENT_TYPE = 'sluice.test';

/** A sequence never used by queues, as this would take 33 million events in one millisecond. */
const FIRST_TEST_SEQUENCE = 2 ** 25 - 32;
/** How such a sequence appears in a ref, minus its last character. */
const TEST_MARK = 'zzzz';
const MARK_AT = 10;

/**
 * Returns the ref of a test event requested at `nowMs`. To tell test events in the same millisecond apart, `number` (0
 * to 31) is used.
 */
export function testRef(nowMs: number, number: number): string {
  return refOfStreamId(`${Math.floor(nowMs)}-${FIRST_TEST_SEQUENCE + (number % 32)}`);
}

/**
 * Returns true if a ref belongs to a test event. These aren't stored in a queue, since they can be derived from their
 * ref.
 */
export function isTestRef(ref: string): boolean {
  return ref.startsWith(TEST_MARK, MARK_AT);
}

/** Creates a test event from its ref, in the format used for signing and sending. Test events are never stored. */
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
