import { parseSlotEndpoint } from '../../core/delivery/slot-endpoint.ts';
import type { InboxRef } from '../../plane/inbox-ref.ts';
import type { RedisClient } from '../../redis/client.ts';
import { type Part, partKeys } from '../keys.ts';
import { parseRow } from './subscription-row.ts';

/** Returns the slot owner. If it does not have an endpoint, this returns undefined. */
export async function readSlotOwner(
  redis: Pick<RedisClient, 'call'>,
  part: Part,
  slot: string,
): Promise<InboxRef | undefined> {
  const { subs, endpoints } = partKeys(part);
  const [row, endpoint] = (await Promise.all([
    redis.call('hget', subs, slot),
    redis.call('hget', endpoints, slot),
  ])) as (string | null)[];
  const owner = parseSlotEndpoint(endpoint ?? '');
  const found = parseRow(row ?? '');
  if (owner === undefined || found === undefined) return undefined;
  return { integration: found.integration, sub: owner.subscription, inc: owner.inc };
}
