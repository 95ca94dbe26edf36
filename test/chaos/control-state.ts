import { createHash, randomBytes } from 'node:crypto';
import { deriveSealKeys } from '../../src/core/delivery/seal.ts';
import type { IntegrationRoute, SubscriptionRoute, TenantRoutes } from '../../src/core/routing/routes.ts';
import { PART_NUMBER, type Part, slotOf } from '../../src/part/keys.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { openIntegration, openQueue, unique } from '../bench/control-state.ts';
import { writeRoutes } from '../support/part/routes.ts';
import { GROUP_KEYS, isActive, SUBSCRIPTIONS, type Subscription } from './record.ts';

const QUEUE = 'orders';

/** The state that would be written by the controller. */
export interface ControlState {
  readonly part: Part;
  readonly payer: string;
  readonly slots: Readonly<Record<Subscription, string>>;
  /** The URL for sending events to an ingress. */
  readonly path: string;
  readonly headers: Record<string, string>;
  /** Writes all routes, optionally with a block of one subscription. */
  readonly write: (isBlocked: boolean) => Promise<void>;
}

/** Pauses all subscriptions of an integration, like a Block. */
function block(integration: IntegrationRoute): IntegrationRoute {
  const covered = Object.entries(integration.subscriptions).map(([sub, row]): [string, SubscriptionRoute] => {
    return [sub, { ...row, route: 'paused', send: 'held', onUnblock: 'continue' }];
  });
  return { ...integration, subscriptions: Object.fromEntries(covered) };
}

/** Creates the state for one stream and three subscriptions, which `write` writes to the Redis at `redisUrl`. */
export function createControlState(
  redisUrl: string,
  rootKey: Uint8Array,
  ports: Readonly<Record<Subscription, number>>,
): ControlState {
  const sealKeys = deriveSealKeys(rootKey);
  const key = randomBytes(16).toString('hex');
  const tenant = `ten_${unique()}`;
  const payer = `acc_${unique()}`;
  const sinceMs = Date.now();
  const receivers = SUBSCRIPTIONS.map(name => ({ name, int: `int_${unique()}`, sub: `sub_${unique()}` }));
  const openKeys = receivers.map(({ name, int }) => [int, GROUP_KEYS.filter(each => isActive(name, each))] as const);

  function routes(isBlocked: boolean): TenantRoutes {
    const integrations = receivers.map(({ name, int, sub }) => {
      const open = openIntegration(sealKeys, QUEUE, { port: ports[name], sub, sinceMs });
      return [int, isBlocked && name === 'blocked' ? block(open) : open] as const;
    });
    return {
      tenant,
      payer,
      plan: 'Metered',
      keys: { [createHash('sha256').update(key).digest('hex')]: '' },
      queues: { [QUEUE]: openQueue('/chaos') },
      integrations: Object.fromEntries(integrations),
    };
  }

  return {
    part: { tenant, queue: QUEUE, gen: 'g1', number: PART_NUMBER },
    payer,
    slots: Object.fromEntries(receivers.map(({ name, sub }) => [name, slotOf(sub, 'n1')])) as ControlState['slots'],
    path: `/events/${tenant}/${QUEUE}`,
    headers: { 'x-api-key': key },
    async write(isBlocked) {
      const redis = await connectRedis(redisUrl, createLogger({ level: 'warn' }));
      try {
        await writeRoutes(redis, routes(isBlocked), Object.fromEntries(openKeys));
      } finally {
        await redis.close();
      }
    },
  };
}
