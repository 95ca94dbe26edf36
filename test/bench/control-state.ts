import { createHash, randomBytes } from 'node:crypto';
import { chooseHeaders } from '../../src/api/context-headers.ts';
import type { Layout } from '../../src/config/layout.ts';
import { sealEndpoint } from '../../src/core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../src/core/delivery/seal.ts';
import { crockford } from '../../src/core/ids/ids.ts';
import { IN_FLIGHT_CAP } from '../../src/core/routing/compile-routes.ts';
import type { IntegrationRoute, TenantRoutes } from '../../src/core/routing/routes.ts';
import { createPartsControl } from '../../src/part/control/parts-control.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { planRoutes } from '../../src/redis/control-plan.ts';
import { type ControlStore, createControlStore } from '../../src/redis/control-store.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { GROUP_KEYS, groupKey, type Target } from './wire.ts';

const QUEUE = 'orders';
/** Activations written at once: they are independent of each other. */
const ACTIVATIONS_AT_ONCE = 200;

/** Writes what the controller would write: the bench needs no Kubernetes. */
export interface ControlState {
  /**
   * A tenant of its own with one queue, and one integration with one subscription for each endpoint, every group key
   * active for all. Redis is to be empty. @returns where to send events
   */
  readonly write: (ingressPort: number, endpointPorts: readonly number[]) => Promise<Target>;
  readonly close: () => Promise<void>;
}

function unique(): string {
  return crockford(randomBytes(16), 20);
}

export async function connectControlState(
  redisUrl: string,
  rootKey: Uint8Array,
  layout: Layout,
): Promise<ControlState> {
  const redis = await connectRedis(redisUrl, createLogger({ level: 'warn' }));
  const record = createControlStore(redis);
  const control: ControlStore = layout === 'parts' ? createPartsControl(redis, record, Date.now) : record;
  const sealKeys = deriveSealKeys(rootKey);

  function integration(endpointPort: number, sub: string, sinceMs: number): IntegrationRoute {
    return {
      state: 'active',
      sinceMs,
      subscriptions: {
        [sub]: {
          inc: 'n1',
          queue: QUEUE,
          gen: 'g1',
          route: 'open',
          send: 'open',
          sinceMs,
          unordered: false,
          cap: IN_FLIGHT_CAP,
          endpoint: sealEndpoint(sealKeys, sub, {
            url: `http://127.0.0.1:${endpointPort}/hook`,
            timeoutMs: 15_000,
            retryMs: [1_000, 2_000, 4_000, 8_000],
            headers: {},
            secretVersion: 1,
          }),
        },
      },
    };
  }

  return {
    async write(ingressPort, endpointPorts) {
      const nowMs = Date.now();
      const key = randomBytes(16).toString('hex');
      const tenant = `ten_${unique()}`;
      const receivers = endpointPorts.map(port => ({ port, int: `int_${unique()}`, sub: `sub_${unique()}` }));
      const want: TenantRoutes = {
        tenant,
        payer: `acc_${unique()}`,
        plan: 'Metered',
        keys: { [createHash('sha256').update(key).digest('hex')]: '' },
        queues: {
          [QUEUE]: {
            gen: 'g1',
            state: 'open',
            retentionMs: 3_600_000,
            maxBytes: 4 * 1024 ** 3,
            source: '/bench',
            eventTypes: [],
            contextHeaders: chooseHeaders(undefined),
          },
        },
        integrations: Object.fromEntries(receivers.map(({ port, int, sub }) => [int, integration(port, sub, nowMs)])),
      };
      const led = await control.lead('bench', 0, nowMs);
      if (!('epoch' in led)) throw new Error('this Redis belongs to another cluster');
      const stored = await control.readTenant(tenant, led.epoch);
      const plan = planRoutes(stored, want, nowMs);
      const have = stored.routes;
      await control.applyParts?.({ fence: led.epoch, have, want, isKnown: false, openKeys: () => new Map() });
      await control.patch(led.epoch, plan.patches);
      const activations = receivers.flatMap(({ int, sub }) =>
        Array.from({ length: GROUP_KEYS }, (_, each) => ({ int, sub, group: groupKey(each) })),
      );
      for (let at = 0; at < activations.length; at += ACTIVATIONS_AT_ONCE) {
        await Promise.all(
          activations.slice(at, at + ACTIVATIONS_AT_ONCE).map(async ({ int, sub, group }) => {
            await control.setActivation(led.epoch, nowMs, int, group, nowMs, [{ integration: int, sub, inc: 'n1' }]);
            await control.setGate(led.epoch, tenant, int, group, true);
          }),
        );
      }
      await control.patch(led.epoch, plan.ready);
      return { port: ingressPort, path: `/events/${tenant}/${QUEUE}`, headers: { 'x-api-key': key } };
    },
    close: redis.close,
  };
}
