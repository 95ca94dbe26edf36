import { publicEventId } from '../ids/public-event-id.ts';
import { refMs } from '../ids/refs.ts';
import type { EventMeta } from './event-meta.ts';

/** Type of a test event sent by a partner to its endpoint. */
const TEST_EVENT_TYPE = 'sluice.test';

/** The last 32 sequences of a millisecond as a ref has them, minus the last character. Events of a log never have one. */
const TEST_MARK = 'zzzz';
const MARK_AT = 10;

/**
 * Returns true if a ref belongs to a test event. These aren't in a log, since they can be derived from their ref.
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
