import type { RedisClient, Reply } from '../redis/client.ts';
import { integrationKeys, tenantKeys } from '../redis/keys.ts';

/** State of a pair of integration and group key in the controller's record. */
interface PairReading {
  /** missing: Redis has no state of the tenant or has lost it, so its data is not reliable. */
  readonly tenant: 'ready' | 'missing';
  readonly integration: 'pending' | 'active' | 'closed' | 'missing';
  /** Whether it is in the list of activations of the integration, which belongs to this tenant. */
  readonly activated: boolean;
}

/** Rejects while Redis is unavailable. */
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
    // Nothing is said of another tenant's integration.
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

/** Whether Redis states that a group key is open for an integration. */
export interface GateReader {
  /**
   * False if either of them is missing, e.g. after a flush. Rejects while Redis is unavailable.
   *
   * @param tenant `ten_…`
   * @param integration `int_…`
   */
  readonly isOpen: (tenant: string, integration: string, groupKey: string) => Promise<boolean>;
  /** Whether the gate is closed. Neither open nor closed while a change is in progress. */
  readonly isClosed: (tenant: string, integration: string, groupKey: string) => Promise<boolean>;
}

export function createGateReader(redis: Pick<RedisClient, 'call'>): GateReader {
  async function isOpen(...pair: [tenant: string, integration: string, groupKey: string]): Promise<boolean> {
    const { tenant, integration, activated } = await readPair(redis, ...pair);
    return tenant === 'ready' && integration !== 'missing' && activated;
  }
  return { isOpen, isClosed: async (...pair) => !(await isOpen(...pair)) };
}
