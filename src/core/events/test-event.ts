import { publicEventId } from '../ids/public-event-id.ts';
import { refMs, refOfStreamId } from '../ids/refs.ts';
import type { EventMeta } from './event-meta.ts';

/** Type of the event that a partner sends to its own endpoint. */
const TEST_EVENT_TYPE = 'sluice.test';

/** A sequence that no queue reaches: it would need 33 million events in one millisecond before it. */
const FIRST_TEST_SEQUENCE = 2 ** 25 - 32;
/** Such a sequence in a ref, without its last character. */
const TEST_MARK = 'zzzz';
const MARK_AT = 10;

/** Returns the ref of a test event requested at `nowMs`; `number` (0 to 31) separates those of one millisecond. */
export function testRef(nowMs: number, number: number): string {
  return refOfStreamId(`${Math.floor(nowMs)}-${FIRST_TEST_SEQUENCE + (number % 32)}`);
}

/** Returns whether a ref belongs to a test event. Such an event is in no queue; it derives from its ref. */
export function isTestRef(ref: string): boolean {
  return ref.startsWith(TEST_MARK, MARK_AT);
}

/** Builds a test event from its ref, as it is signed and sent. It is never stored. */
export function testEvent(ref: string, subscription: string): { readonly meta: EventMeta; readonly body: Buffer } {
  const time = refMs(ref);
  const timestamp = new Date(time).toISOString();
  const data = { subscription, message: 'This is a test of your endpoint. No producer has sent it.' };
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
