import { createHash, randomBytes } from 'node:crypto';
import { chooseHeaders } from '../../src/api/context-headers.ts';
import { sealEndpoint } from '../../src/core/delivery/endpoint-config.ts';
import { rootKeyFingerprint } from '../../src/core/delivery/root-key-fingerprint.ts';
import { deriveSealKeys, type SealKeys } from '../../src/core/delivery/seal.ts';
import { crockford } from '../../src/core/ids/ids.ts';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from '../../src/core/routing/routes.ts';
import { IN_FLIGHT_CAP } from '../../src/core/routing/subscription-route.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { CLUSTER_KEYS } from '../../src/redis/keys.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { writeRoutes } from '../support/part/routes.ts';
import { GROUP_KEYS, groupKey, type Target } from './wire.ts';

const QUEUE = 'orders';
/** The discard port, on which no process listens. */
export const NOBODY = 9;

/** Writes control state to Redis like the controller, so that the benchmark works without Kubernetes. */
export interface ControlState {
  /**
   * Writes a new tenant with a stream, and an integration with a subscription for each endpoint. All group keys are
   * active.
   *
   * @returns where to send events
   */
  readonly write: (ingressPort: number, endpointPorts: readonly number[], more?: MoreOfTenant) => Promise<Target>;
  /**
   * Blocks the stream written last for its last endpoint, or removes the block. Events are kept and routed afterwards.
   */
  readonly block: (isBlocked: boolean) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface MoreOfTenant {
  /** The number of further integrations, each with a subscription and no active group key. Default: 0. */
  readonly unmatched?: number;
  /** The stream's retention period. Default: an hour. */
  readonly retentionMs?: number;
  /** The limit of its account. Default: unlimited. */
  readonly eventsPerSecond?: number;
}

interface Receiver {
  readonly port: number;
  readonly int: string;
  readonly sub: string;
}

function receiverAt(port: number): Receiver {
  return { port, int: `int_${unique()}`, sub: `sub_${unique()}` };
}

/** Returns a new id without its prefix. */
export function unique(): string {
  return crockford(randomBytes(16), 20);
}

/** Returns a stream that accepts all events. The default retention period is an hour. */
export function openQueue(source: string, retentionMs = 3_600_000): QueueRoute {
  return {
    gen: 'g1',
    state: 'open',
    retentionMs,
    maxBytes: 4 * 1024 ** 3,
    source,
    eventTypes: [],
    contextHeaders: chooseHeaders(undefined),
  };
}

/**
 * Returns an integration with a subscription whose endpoint listens on a loopback port. The default `route` is 'open'.
 */
export function openIntegration(
  sealKeys: SealKeys,
  queue: string,
  {
    port,
    sub,
    sinceMs,
    route = 'open',
  }: {
    readonly port: number;
    readonly sub: string;
    readonly sinceMs: number;
    readonly route?: SubscriptionRoute['route'];
  },
): IntegrationRoute {
  const url = `http://127.0.0.1:${port}/hook`;
  const retryMs = [1_000, 2_000, 4_000, 8_000];
  const subscription: SubscriptionRoute = {
    inc: 'n1',
    queue,
    gen: 'g1',
    route,
    send: 'open',
    sinceMs,
    unordered: false,
    cap: IN_FLIGHT_CAP,
    endpoint: sealEndpoint(sealKeys, sub, {
      url,
      timeoutMs: 15_000,
      retryMs,
      headers: {},
      salt: 'a-salt',
      secretVersion: 1,
    }),
  };
  return { state: 'active', sinceMs, subscriptions: { [sub]: subscription } };
}

export async function connectControlState(redisUrl: string, rootKey: Uint8Array): Promise<ControlState> {
  const redis = await connectRedis(redisUrl, createLogger({ level: 'warn' }));
  const sealKeys = deriveSealKeys(rootKey);

  let written: { want: TenantRoutes; openKeys: Record<string, string[]>; last: Receiver } | undefined;

  return {
    async write(ingressPort, endpointPorts, { unmatched = 0, retentionMs, ...limits } = {}) {
      const nowMs = Date.now();
      const key = randomBytes(16).toString('hex');
      const tenant = `ten_${unique()}`;
      const receivers = endpointPorts.map(receiverAt);
      const others = Array.from({ length: unmatched }, () => receiverAt(NOBODY));
      const want: TenantRoutes = {
        tenant,
        payer: `acc_${unique()}`,
        plan: 'Metered',
        ...limits,
        keys: { [createHash('sha256').update(key).digest('hex')]: '' },
        queues: { [QUEUE]: openQueue('/bench', retentionMs) },
        integrations: Object.fromEntries(
          [...receivers, ...others].map(({ int, ...to }) => [
            int,
            openIntegration(sealKeys, QUEUE, { ...to, sinceMs: nowMs }),
          ]),
        ),
      };
      const groupKeys = Array.from({ length: GROUP_KEYS }, (_, each) => groupKey(each));
      const openKeys = Object.fromEntries(receivers.map(({ int }) => [int, groupKeys]));
      await writeRoutes(redis, want, openKeys);
      // Dispatchers look for the root key every second until there has been a leader.
      await redis.call('hset', CLUSTER_KEYS.meta, 'rootKey', rootKeyFingerprint(rootKey));
      const last = receivers.at(-1);
      if (last !== undefined) written = { want, openKeys, last };
      return { port: ingressPort, path: `/events/${tenant}/${QUEUE}`, headers: { 'x-api-key': key } };
    },
    async block(isBlocked) {
      if (written === undefined) throw new Error('nothing was written');
      const { want, openKeys, last } = written;
      const route = isBlocked ? 'paused' : 'open';
      const integration = openIntegration(sealKeys, QUEUE, { ...last, sinceMs: Date.now(), route });
      written.want = { ...want, integrations: { ...want.integrations, [last.int]: integration } };
      await writeRoutes(redis, written.want, openKeys);
    },
    close: redis.close,
  };
}
