import type { RedisClient, Reply } from '../redis/client.ts';
import { integrationKeys, tenantKeys } from '../redis/keys.ts';

/** The state that the controller's record contains for an integration and a group key. */
interface PairReading {
  /** missing: Redis does not have any state for this tenant or has lost it. In this case, its data can't be used. */
  readonly tenant: 'ready' | 'missing';
  readonly integration: 'pending' | 'active' | 'closed' | 'missing';
  /** True if the group key is in the list of activations for the integration, which belongs to this tenant. */
  readonly activated: boolean;
}

/** Rejects while Redis is not available. */
async function readPair(
  redis: Pick<RedisClient, 'call'>,
  tenant: string,
  integration: string,
  groupKey: string,
): Promise<PairReading> {
  const t = tenantKeys(tenant);
  const i = integrationKeys(integration);
  const [tenantReady, isOwn, meta, since] = await Promise.all([
    redis.call('hget', t.meta, 'ready'),
    // Returns nothing if the integration belongs to a different tenant.
    redis.call('hexists', t.index, `i:${integration}`),
    redis.call('hmget', i.meta, 'ready', 'state') as Promise<Reply[]>,
    redis.call('hget', i.act, groupKey),
  ]);
  const [ready, state] = meta;
  return {
    tenant: tenantReady === '1' ? 'ready' : 'missing',
    integration: ready !== '1' ? 'missing' : state === 'pending' || state === 'active' ? state : 'closed',
    activated: isOwn === 1 && since !== null,
  };
}

/** Returns the state of a group key of an integration according to Redis. */
export interface GateReader {
  /**
   * False if one of them is missing, for example after a flush. Rejects while Redis is not available.
   *
   * @param tenant `ten_…`
   * @param integration `int_…`
   */
  readonly isOpen: (tenant: string, integration: string, groupKey: string) => Promise<boolean>;
  /** Returns true if the gate has been closed. While a change is in progress, it is neither open nor closed. */
  readonly isClosed: (tenant: string, integration: string, groupKey: string) => Promise<boolean>;
}

export function createGateReader(redis: Pick<RedisClient, 'call'>): GateReader {
  async function isOpen(...pair: [tenant: string, integration: string, groupKey: string]): Promise<boolean> {
    const { tenant, integration, activated } = await readPair(redis, ...pair);
    return tenant === 'ready' && integration !== 'missing' && activated;
  }
  return { isOpen, isClosed: async (...pair) => !(await isOpen(...pair)) };
}
