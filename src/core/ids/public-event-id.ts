import { ID_PREFIX } from './ids.ts';

const PREFIX = 'evt_';
const REF_CHARS = 15;
const EVENT_ID = /^evt_[0-9a-hjkmnp-tv-z]{35}$/;

/** An event in the inbox of a given subscription. */
interface InboxEvent {
  readonly ref: string;
  /** `sub_…` */
  readonly subscription: string;
}

/**
 * Returns the public id of an event in the subscription inbox: `evt_`, followed by the ref and the id of the
 * subscription without its prefix. The ref alone is not sufficient, because it belongs to a queue, and several
 * subscriptions may receive the same event. IDs within a subscription sort in the order of acceptance.
 */
export function publicEventId(ref: string, subscription: string): string {
  return PREFIX + ref + subscription.slice(ID_PREFIX.Subscription.length);
}

/** Parses an event's public id. Returns undefined if the id is malformed. */
export function parsePublicEventId(id: string): InboxEvent | undefined {
  if (!EVENT_ID.test(id)) return undefined;
  const refEnd = PREFIX.length + REF_CHARS;
  return { ref: id.slice(PREFIX.length, refEnd), subscription: ID_PREFIX.Subscription + id.slice(refEnd) };
}
