import { DELIVERY_FIELDS, type DeliveryFields } from '../core/delivery/delivery-state.ts';
import type { RedisClient } from './client.ts';
import type { InboxRef } from './inbox-store.ts';
import { integrationKeys } from './keys.ts';

/** Reads how deliveries go, subscription by subscription; in the order of `inboxes`. Undefined: another generation. */
export type ReadDeliveries = (inboxes: readonly InboxRef[]) => Promise<(DeliveryFields | undefined)[]>;

/** Commands that are under way at once. */
const AT_ONCE = 100;

export function createDeliveryReader(redis: Pick<RedisClient, 'call'>): ReadDeliveries {
  async function readOne({ integration, sub, inc }: InboxRef): Promise<DeliveryFields | undefined> {
    const [has, ...values] = (await redis.call(
      'hmget',
      integrationKeys(integration).sub(sub),
      'inc',
      ...DELIVERY_FIELDS,
    )) as (string | null)[];
    if (has !== inc) return undefined;
    return Object.fromEntries(DELIVERY_FIELDS.map((field, i) => [field, values[i] ?? undefined]));
  }
  return async inboxes => {
    const found: (DeliveryFields | undefined)[] = [];
    for (let at = 0; at < inboxes.length; at += AT_ONCE) {
      found.push(...(await Promise.all(inboxes.slice(at, at + AT_ONCE).map(readOne))));
    }
    return found;
  };
}
