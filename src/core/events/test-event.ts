import { publicEventId } from '../ids/public-event-id.ts';
import { refMs, refOfStreamId } from '../ids/refs.ts';
import type { EventMeta } from './event-meta.ts';

/** Type of the event that a partner sends to its own endpoint. */
export const TEST_EVENT_TYPE = 'sluice.test';

/** A sequence that no queue reaches: a millisecond would have to have 33 million events before. */
const FIRST_TEST_SEQUENCE = 2 ** 25 - 32;
/** What such a sequence looks like in a ref, but for its last character. */
const TEST_MARK = 'zzzz';
const MARK_AT = 10;

/** Ref of a test event that was asked for at `nowMs`; `number` (0 to 31) tells those of one millisecond apart. */
export function testRef(nowMs: number, number: number): string {
  return refOfStreamId(`${Math.floor(nowMs)}-${FIRST_TEST_SEQUENCE + (number % 32)}`);
}

/** Whether a ref is of a test event: it is in no queue, and follows from its ref. */
export function isTestRef(ref: string): boolean {
  return ref.startsWith(TEST_MARK, MARK_AT);
}

/** A test event as it is signed and sent: made anew from its ref wherever it is needed, and stored nowhere. */
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
