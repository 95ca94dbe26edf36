import { randomUUID } from 'node:crypto';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from '../../core/routing/routes.ts';
import type { InboxRef } from '../../plane/inbox-ref.ts';
import type { RedisClient } from '../../redis/client.ts';
import { planRoutes } from '../control-plan.ts';
import { createControlRecord } from '../control-store.ts';
import type { IngressEvent } from '../ingress-store.ts';

export const START_MS = 1_800_000_000_000;
export const QUEUE = 'orders';

/** Short form of a subscription: `open` and sending unless specified otherwise. */
export type SubscriptionShort = Partial<SubscriptionRoute>;
export interface IntegrationShort {
  readonly state?: IntegrationRoute['state'];
  readonly sinceMs?: number;
  readonly sub?: SubscriptionShort;
}

interface Names {
  readonly tenant: string;
  readonly account: string;
  /** The integration id. */
  readonly nameOf: (name: string) => string;
}

function makeRoutes(
  { tenant, account, nameOf }: Names,
  integrations: Readonly<Record<string, IntegrationShort>>,
  queue: Partial<QueueRoute> | null,
): TenantRoutes {
  return {
    tenant,
    payer: account,
    plan: 'Metered',
    keys: {},
    queues:
      queue === null
        ? {}
        : {
            [QUEUE]: {
              gen: 'gen1',
              state: 'open',
              retentionMs: 3_600_000,
              maxBytes: 1_000_000,
              source: '/events/x/orders',
              eventTypes: [],
              contextHeaders: { eventType: [], groupKey: [], eventId: [], forward: [] },
              ...queue,
            },
          },
    integrations: Object.fromEntries(
      Object.entries(integrations).map(([name, short]) => [
        nameOf(name),
        {
          state: short.state ?? 'active',
          sinceMs: short.sinceMs ?? START_MS - 1_000_000,
          subscriptions: {
            [`sub_${name}`]: {
              inc: 'inc1',
              queue: QUEUE,
              gen: queue?.gen ?? 'gen1',
              route: 'open',
              send: 'open',
              sinceMs: START_MS - 1_000_000,
              unordered: false,
              cap: 64,
              endpoint: 'sealed',
              ...short.sub,
            },
          },
        },
      ]),
    ),
  };
}

/**
 * The controller's record for a single tenant. The record uses a shared Redis with separate names, one queue, one
 * subscription for each integration, and a clock that is only changed by the test.
 */
export function createTenant(redis: RedisClient) {
  const unique = randomUUID().replaceAll('-', '').slice(0, 12);
  // An id of the same length as a real one, because ingress checks the length.
  const tenant = `ten_${unique.padEnd(20, '0')}`;
  const clock = { ms: START_MS };
  const nowMs = () => clock.ms;
  const control = createControlRecord(redis);
  const ref = { tenant, queue: QUEUE };
  const fence = { epoch: 1 };
  const account = `acc_${unique}`;

  const nameOf = (name: string) => `int_${unique}${name}`;
  const inboxOf = (name: string, inc = 'inc1'): InboxRef => ({ integration: nameOf(name), sub: `sub_${name}`, inc });

  const routes = (integrations: Readonly<Record<string, IntegrationShort>>, queue: Partial<QueueRoute> | null = {}) =>
    makeRoutes({ tenant, account, nameOf }, integrations, queue);

  return {
    tenant,
    queue: ref,
    clock,
    nowMs,
    control,
    account,
    fence,
    nameOf,
    inboxOf,
    routes,
    /** Records routes in the same way as the controller. Activations are not included. */
    async apply(want: TenantRoutes) {
      const plan = planRoutes(await control.readTenant(tenant, fence.epoch), want);
      await control.patch(fence.epoch, plan.patches);
      await control.patch(fence.epoch, plan.ready);
      return plan;
    },
    async activate(name: string, groupKey: string, sinceMs = START_MS - 1_000_000) {
      await control.setActivation(fence.epoch, nameOf(name), groupKey, sinceMs);
    },
    async deactivate(name: string, groupKey: string) {
      await control.setActivation(fence.epoch, nameOf(name), groupKey, null);
    },
  };
}

export function event(id: string, groupKey: string | undefined, body: string | Buffer = 'body'): IngressEvent {
  return {
    id,
    type: undefined,
    groupKey,
    contentType: undefined,
    traceparent: undefined,
    forward: {},
    body: Buffer.from(body),
  };
}
