import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chooseHeaders } from '../../src/api/context-headers.ts';
import { sealEndpoint } from '../../src/core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../src/core/delivery/seal.ts';
import { hashIngressKey } from '../../src/core/ids/ingress-key.ts';
import type { IntegrationRoute } from '../../src/core/routing/routes.ts';
import { IN_FLIGHT_CAP } from '../../src/core/routing/subscription-route.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { writeRoutes } from '../support/part/routes.ts';
import { startRedis } from '../support/redis/server.ts';
import { startSluice } from '../support/sluice.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

export const INGRESS_KEY = 'a key of the producer';
const TENANT = 'ten_00000000000000000000';
const QUEUE = 'orders';
const ROOT_KEY = randomBytes(32);
const SEAL_KEYS = deriveSealKeys(ROOT_KEY);

export interface Pipeline {
  /** The URL to which the producer publishes events. */
  readonly eventsUrl: string;
  readonly close: () => Promise<void>;
}

/** Returns an integration with one subscription, which uses short retry delays. */
function integrationTo(name: string, url: string): IntegrationRoute {
  const config = { url, timeoutMs: 5_000, retryMs: [200], headers: {}, salt: 'a-salt', secretVersion: 1 };
  const subscription = {
    inc: 'inc1',
    queue: QUEUE,
    gen: 'gen1',
    route: 'open',
    send: 'open',
    sinceMs: 1,
    unordered: false,
    cap: IN_FLIGHT_CAP,
    endpoint: sealEndpoint(SEAL_KEYS, `sub_${name}`, config),
  } as const;
  return { state: 'active', sinceMs: 1, subscriptions: { [`sub_${name}`]: subscription } };
}

/**
 * Starts a Redis, an ingress, and a dispatcher for a single stream, with one subscription for each endpoint. Every
 * endpoint receives the events of `groupKeys`.
 */
export async function startPipeline(
  endpoints: Readonly<Record<string, string>>,
  groupKeys: readonly string[],
): Promise<Pipeline> {
  const [server, folder] = await Promise.all([startRedis({ appendonly: true }), temporaryFolder('pipeline')]);
  const rootKeyFile = join(folder.path, 'root.key');
  await writeFile(rootKeyFile, ROOT_KEY, { mode: 0o600 });
  const redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  const named = Object.entries(endpoints).map(([name, url]) => [`int_${name}`, integrationTo(name, url)] as const);
  const queue = {
    gen: 'gen1',
    state: 'open',
    retentionMs: 3_600_000,
    maxBytes: 1e9,
    source: `/events/${TENANT}/${QUEUE}`,
    eventTypes: [],
    contextHeaders: chooseHeaders({}),
  } as const;
  const routes = {
    tenant: TENANT,
    payer: 'acc_1',
    plan: 'Metered',
    keys: { [hashIngressKey(INGRESS_KEY)]: '' },
    queues: { [QUEUE]: queue },
    integrations: Object.fromEntries(named),
  } as const;
  await writeRoutes(redis, routes, Object.fromEntries(named.map(([integration]) => [integration, groupKeys])));
  await redis.close();

  const start = (role: 'ingress' | 'dispatcher') =>
    startSluice({
      role,
      kubeconfig: '/dev/null',
      redisUrl: server.url,
      env: { SLUICE_ROOT_KEY_FILE: rootKeyFile },
    });
  const [ingress, dispatcher] = await Promise.all([start('ingress'), start('dispatcher')]);
  return {
    eventsUrl: `${ingress.ingressUrl}/events/${TENANT}/${QUEUE}`,
    async close() {
      await Promise.all([ingress.stop(), dispatcher.stop()]);
      await server.stop();
      await folder.remove();
    },
  };
}
