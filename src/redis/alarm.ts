import type { RedisClient } from './client.ts';
import { CLUSTER_KEYS } from './keys.ts';

/** How other roles tell the controller that control state is missing where it is needed, or that tokens are. */
export interface Alarm {
  /** Says which slot (`t:ten_…`, `q:ten_…:queue`, `i:int_…`, `a:acc_…`), at most once a second each. */
  readonly raise: (slot: string) => void;
  readonly listen: (listener: (slot: string) => void) => void;
}

const SAME_SLOT_MS = 1_000;

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
