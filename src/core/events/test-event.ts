import { publicEventId } from '../ids/public-event-id.ts';
import { refMs } from '../ids/refs.ts';
import type { EventMeta } from './event-meta.ts';

/** The type of the test event that partners can send to their endpoint. */
const TEST_EVENT_TYPE = 'sluice.test';

/** The last 32 sequences of a millisecond in ref format, without the last character. Events in a log never use them. */
const TEST_MARK = 'zzzz';
const MARK_AT = 10;

/**
 * Returns true if this is the ref of a test event. Test events are not stored in a log, because they can be derived
 * from their ref.
 */
export function isTestRef(ref: string): boolean {
  return ref.startsWith(TEST_MARK, MARK_AT);
}

/**
 * Creates a test event for the given ref. The format is the same as the one used for signing and sending. Test events
 * are never stored.
 */
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
