import { randomUUID } from 'node:crypto';
import { putRoutes } from '../../../../test/support/part/routes.ts';
import { type EndpointConfig, sealEndpoint } from '../../../core/delivery/endpoint-config.ts';
import { hashIngressKey } from '../../../core/ids/ingress-key.ts';
import type { QueueRoute, TenantRoutes } from '../../../core/routing/routes.ts';
import { createPartsControl } from '../../../part/control/parts-control.ts';
import { createMembers } from '../../../part/members/members.ts';
import { createTenant } from '../../../record/testing/tenant.ts';
import type { RedisClient } from '../../../redis/client.ts';
import { createPartDispatcher } from '../part-dispatcher.ts';
import { createPartWorker } from '../part-worker.ts';
import type { PartWorkerDeps } from '../part-worker-deps.ts';
import { connectWorker, sealKeys } from './part-world.ts';

export const INGRESS_KEY = 'a key of the producer';
const FENCE = 1;

type Endpoint = Pick<EndpointConfig, 'url'> & Partial<EndpointConfig>;

/**
 * A producer that has a single stream and a single subscription. The producer is written in the same way as by the
 * controller. The Redis is the test's own.
 */
export function createPipeline(redis: RedisClient) {
  const t = createTenant(redis);
  const control = createPartsControl(redis, t.control, Date.now);
  const sub = 'sub_x';

  function apply(want: TenantRoutes): Promise<void> {
    const openKeys = () => new Map([[t.nameOf('x'), [{ groupKey: 'k', sinceMs: 0 }]]]);
    return putRoutes(control, { fence: FENCE, want, isKnown: false, openKeys });
  }

  return {
    tenant: t.tenant,
    sub,
    /** Brings stream, ingress key and subscription into force. The subscription is active for the group key `k`. */
    subscribe(endpoint: Endpoint, stream: Partial<QueueRoute> = {}): Promise<void> {
      const config = { timeoutMs: 5_000, retryMs: [200], headers: {}, salt: 'a-salt', secretVersion: 1, ...endpoint };
      const sealed = sealEndpoint(sealKeys, sub, config);
      const routes = t.routes({ x: { sub: { endpoint: sealed } } }, { maxBytes: 1e9, ...stream });
      return apply({ ...routes, keys: { [hashIngressKey(INGRESS_KEY)]: '' } });
    },
    /**
     * Starts a dispatcher that uses separate connections. You can use `change` to modify the dependencies of its
     * workers.
     */
    async startDispatcher(url: string, change: Partial<PartWorkerDeps> = {}) {
      const name = randomUUID();
      const { deps, redis: own, pushes, client } = await connectWorker(name, url);
      const dispatcher = createPartDispatcher({
        redis: own,
        pushes,
        members: createMembers(own, name),
        name,
        startPart: part => ({ ...createPartWorker({ ...deps, ...change }, part), setHome: () => {} }),
        onUnlisted: () => {},
        isHeld: () => false,
        log: deps.log,
      });
      dispatcher.start();
      return async function stop() {
        await dispatcher.stop();
        pushes.close();
        await client.close();
        await own.close();
      };
    },
  };
}
