import { chooseHeaders } from '../../src/api/context-headers.ts';
import { sealEndpoint } from '../../src/core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../src/core/delivery/seal.ts';
import { hashIngressKey } from '../../src/core/ids/ingress-key.ts';
import { createDispatcher } from '../../src/dataplane/dispatcher/dispatcher.ts';
import { createEndpointClient } from '../../src/dataplane/dispatcher/endpoint-client.ts';
import { createIngestion } from '../../src/dataplane/ingestion.ts';
import { createIngress } from '../../src/dataplane/ingress/server.ts';
import { createRouter } from '../../src/dataplane/router/router.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { createHintIndex } from '../../src/redis/hints.ts';
import { createTenant, QUEUE, START_MS } from '../../src/redis/testing/tenant.ts';
import { createTrafficStore } from '../../src/redis/traffic-store.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { createRegistry } from '../../src/telemetry/metrics.ts';
import { startRedis } from '../support/redis/server.ts';

export const INGRESS_KEY = 'a key of the producer';
const ROOT_KEY = Buffer.alloc(32, 7);
const SEAL_KEYS = deriveSealKeys(ROOT_KEY);
const log = createLogger({ level: 'silent' });

export interface Pipeline {
  /** Where events of the producer go. */
  readonly eventsUrl: string;
  readonly close: () => Promise<void>;
}

/**
 * Starts a Redis, an ingress, a router and a dispatcher for one stream, and a subscription for each endpoint. Every
 * endpoint gets the events of `groupKeys`.
 */
export async function startPipeline(
  endpoints: Readonly<Record<string, string>>,
  groupKeys: readonly string[],
): Promise<Pipeline> {
  const server = await startRedis({ appendonly: true });
  const redis = await connectRedis(server.url, log);
  const tenant = createTenant(redis);
  const begun = performance.now();
  const nowMs = () => START_MS + Math.round(performance.now() - begun);
  Object.defineProperty(tenant.clock, 'ms', { get: nowMs });
  const subscriptions = Object.entries(endpoints).map(([name, url]) => {
    const config = { url, timeoutMs: 5_000, retryMs: [200], headers: {}, secretVersion: 1 };
    return [name, { sub: { endpoint: sealEndpoint(SEAL_KEYS, `sub_${name}`, config) } }] as const;
  });
  const routes = tenant.routes(Object.fromEntries(subscriptions), { maxBytes: 1e9, contextHeaders: chooseHeaders({}) });
  await tenant.apply({ ...routes, keys: { [hashIngressKey(INGRESS_KEY)]: '' } });
  for (const [name] of subscriptions) for (const groupKey of groupKeys) await tenant.activate(name, groupKey);

  const registry = createRegistry();
  const hints = { r: createHintIndex(redis, 'r'), d: createHintIndex(redis, 'd') };
  const { inboxes, queues, ledger, ingress: operations } = tenant;
  const common = { inboxes, traffic: createTrafficStore(redis), alarm: () => {}, nowMs, log, registry };
  const router = createRouter({ ...common, queues, ledger, queueHints: hints.r, inboxHints: hints.d });
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.1'] });
  const keys = { rootKey: ROOT_KEY, sealKeys: SEAL_KEYS };
  const dispatcher = createDispatcher({ ...common, hints: hints.d, client, keys, version: '0', wallMs: Date.now });
  const store = createIngestion({ operations, lower: hints.r.lower, nowMs });
  const ingress = createIngress({ store, askMasters: redis.callAll, registry, log });
  const port = await ingress.listen(0, '127.0.0.1');
  router.start();
  dispatcher.start();
  return {
    eventsUrl: `http://127.0.0.1:${port}/events/${tenant.tenant}/${QUEUE}`,
    async close() {
      for (const end of [ingress.close, router.stop, dispatcher.stop, client.close, redis.close]) await end();
      await server.stop();
    },
  };
}
