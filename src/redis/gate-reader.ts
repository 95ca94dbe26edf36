import type { RedisClient } from './client.ts';
import { integrationKeys, tenantKeys } from './keys.ts';

/** Whether Redis states that a group key is open for an integration. */
export interface GateReader {
  /**
   * True only when both places say so that routing asks: the tenant's gates, and the integration's own. False where either
   * is missing, as after a flush. Rejects while Redis is away.
   *
   * @param tenant `ten_…`
   * @param integration `int_…`
   */
  readonly isOpen: (tenant: string, integration: string, groupKey: string) => Promise<boolean>;
}

export function createGateReader(redis: Pick<RedisClient, 'call'>): GateReader {
  return {
    async isOpen(tenant, integration, groupKey) {
      const t = tenantKeys(tenant);
      const i = integrationKeys(integration);
      const [tenantReady, gate, integrationReady, since] = await Promise.all([
        redis.call('HGET', t.meta, 'ready'),
        redis.call('ZSCORE', t.gates, `${groupKey}\0${integration}`),
        redis.call('HGET', i.meta, 'ready'),
        redis.call('HGET', i.act, groupKey),
      ]);
      return tenantReady === '1' && gate !== null && integrationReady === '1' && since !== null;
    },
  };
}
