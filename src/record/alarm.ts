import { type InboxRef, inboxMember, parseInboxMember } from '../plane/inbox-ref.ts';
import type { RedisClient } from '../redis/client.ts';
import { CLUSTER_KEYS } from '../redis/keys.ts';

/**
 * Allows other roles to notify the controller that control state or tokens are missing, that an endpoint was disabled,
 * or that the state of deliveries has changed.
 */
export interface Alarm {
  /**
   * Reports a slot (`t:ten_…`, `q:ten_…:queue`, `i:int_…`, `a:acc_…`), an endpoint (`h:int_…/sub_….inc`), or the
   * deliveries of an inbox (`d:int_…/sub_….inc`). Each alarm is reported at most once per second.
   */
  readonly raise: (slot: string) => void;
  readonly listen: (listener: (slot: string) => void) => void;
}

const SAME_SLOT_MS = 1_000;

/** Returns the alarm for an inbox whose endpoint was disabled. */
export function disabledEndpoint(inbox: InboxRef): string {
  return `h:${inboxMember(inbox)}`;
}

/** Returns the inbox whose endpoint was disabled. Returns undefined for all other alarms. */
export function parseDisabledEndpoint(slot: string): InboxRef | undefined {
  return slot.startsWith('h:') ? parseInboxMember(slot.slice(2)) : undefined;
}

/** Returns the inbox whose delivery state has changed. */
export function changedDelivery(member: string): string {
  return `d:${member}`;
}

/** Returns the inbox whose delivery state has changed. Returns undefined for all other alarms. */
export function parseChangedDelivery(slot: string): InboxRef | undefined {
  return slot.startsWith('d:') ? parseInboxMember(slot.slice(2)) : undefined;
}

export function createAlarm(redis: RedisClient): Alarm {
  const raised = new Map<string, number>();
  return {
    raise(slot) {
      const now = performance.now();
      if (now - (raised.get(slot) ?? Number.NEGATIVE_INFINITY) < SAME_SLOT_MS) return;
      if (raised.size > 10_000) raised.clear();
      raised.set(slot, now);
      // Lost when Redis is away: the periodic look of the controller finds it then.
      redis.publish(CLUSTER_KEYS.alarm, slot).catch(() => {});
    },
    listen(listener) {
      redis.subscribe(
        [CLUSTER_KEYS.alarm],
        (_channel, slot) => listener(slot),
        () => {},
      );
    },
  };
}
