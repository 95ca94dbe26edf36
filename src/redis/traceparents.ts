import type { StoredEventMeta } from '../core/events/event-meta.ts';
import type { RedisClient } from './client.ts';
import { queueKeys } from './keys.ts';
import type { OwnedQueue } from './queue-store.ts';

/** The `traceparent` that each event was stored with; undefined for those without, and for those that are gone. */
export type ReadTraceparents = (
  queue: Pick<OwnedQueue, 'tenant' | 'queue' | 'gen'>,
  ids: readonly string[],
) => Promise<(string | undefined)[]>;

export function createTraceparentReader(redis: Pick<RedisClient, 'run'>): ReadTraceparents {
  return async ({ tenant, queue, gen }, ids) => {
    const reply = (await redis.run('metas', [queueKeys(tenant, queue, gen).bodies], ids)) as [string?, ...unknown[]][];
    return reply.map(([meta]) => (meta === undefined ? undefined : (JSON.parse(meta) as StoredEventMeta).p));
  };
}
