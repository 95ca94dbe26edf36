import { integrationKeys } from '../../redis/keys.ts';
import { slotOf } from '../keys.ts';
import { type FindSlot, type PartClient, readPart } from './find-part.ts';

/**
 * Uses the controller's record to return the location of a subscription's events. Used by roles that don't have access
 * to the objects.
 */
export function createFindRecordedSlot(redis: PartClient): FindSlot {
  return async function findSlot({ integration, sub, inc }) {
    const key = integrationKeys(integration).sub(sub);
    const [recorded, tenant, queue] = (await redis.call('hmget', key, 'inc', 'tenant', 'queue')) as (string | null)[];
    if (recorded !== inc || typeof tenant !== 'string' || typeof queue !== 'string') return undefined;
    const part = await readPart(redis, tenant, queue);
    return part && { part, slot: slotOf(sub, inc) };
  };
}
