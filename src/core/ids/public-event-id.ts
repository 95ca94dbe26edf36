import { ID_PREFIX } from './ids.ts';

const PREFIX = 'evt_';
const REF_CHARS = 15;
const EVENT_ID = /^evt_[0-9a-hjkmnp-tv-z]{35}$/;

/** An event of one inbox. */
export interface InboxEvent {
  readonly ref: string;
  /** `sub_…` */
  readonly subscription: string;
}

/**
 * Public id of an event in the inbox of a subscription: `evt_`, its ref, and what follows the prefix in the id of the
 * subscription. A ref alone is of a queue, and one event may come to several subscriptions. Ids of one subscription sort
 * in the order in which their events were accepted.
 */
export function publicEventId(ref: string, subscription: string): string {
  return PREFIX + ref + subscription.slice(ID_PREFIX.Subscription.length);
}

/** undefined for what is no such id. */
export function parsePublicEventId(id: string): InboxEvent | undefined {
  if (!EVENT_ID.test(id)) return undefined;
  const refEnd = PREFIX.length + REF_CHARS;
  return { ref: id.slice(PREFIX.length, refEnd), subscription: ID_PREFIX.Subscription + id.slice(refEnd) };
}
