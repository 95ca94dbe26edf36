import { randomUUID } from 'node:crypto';
import { refOfStreamId } from '../../core/ids/refs.ts';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from '../../core/routing/routes.ts';
import type { RedisClient } from '../client.ts';
import { planRoutes } from '../control-plan.ts';
import { createControlStore } from '../control-store.ts';
import { createInboxStore, type InboxRef, type RouteItem } from '../inbox-store.ts';
import { createIngressOperations, type IngressEvent } from '../ingress-store.ts';
import { createLedgerStore } from '../ledger-store.ts';
import { createQueueStore, type OwnedQueue, type QueueEntry } from '../queue-store.ts';

export const START_MS = 1_800_000_000_000;
export const QUEUE = 'orders';

/** Short form of a subscription: `open` and sending unless said otherwise. */
export type SubscriptionShort = Partial<SubscriptionRoute>;
export interface IntegrationShort {
  readonly state?: IntegrationRoute['state'];
  readonly sinceMs?: number;
  readonly sub?: SubscriptionShort;
}

/**
 * One tenant with names of its own on a shared Redis, with one queue and one subscription an integration, on a clock
 * that only the test moves.
 */
export function createTenant(redis: RedisClient) {
  const unique = randomUUID().replaceAll('-', '').slice(0, 12);
  // As long as a real one: ingress looks.
  const tenant = `ten_${unique.padEnd(20, '0')}`;
  const clock = { ms: START_MS };
  const nowMs = () => clock.ms;
  const control = createControlStore(redis);
  const queues = createQueueStore(redis);
  const inboxes = createInboxStore(redis);
  const ledger = createLedgerStore(redis);
  const ingress = createIngressOperations(redis, nowMs, () => {});
  const ref = { tenant, queue: QUEUE };
  const fence = { epoch: 1 };
  const account = `acc_${unique}`;

  const nameOf = (name: string) => `int_${unique}${name}`;
  const inboxOf = (name: string, inc = 'inc1'): InboxRef => ({ integration: nameOf(name), sub: `sub_${name}`, inc });

  function routes(
    integrations: Readonly<Record<string, IntegrationShort>>,
    queue: Partial<QueueRoute> | null = {},
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

  return {
    tenant,
    queue: ref,
    clock,
    nowMs,
    control,
    queues,
    inboxes,
    ledger,
    account,
    ingress,
    fence,
    nameOf,
    inboxOf,
    routes,
    /** Brings routes into force as the controller does, without activations. */
    async apply(want: TenantRoutes) {
      const plan = planRoutes(await control.readTenant(tenant, fence.epoch), want, clock.ms);
      await control.patch(fence.epoch, plan.patches);
      await control.patch(fence.epoch, plan.ready);
      return plan;
    },
    async activate(name: string, groupKey: string, sinceMs = START_MS - 1_000_000, inboxesOfIt?: InboxRef[]) {
      await control.setActivation(
        fence.epoch,
        clock.ms,
        nameOf(name),
        groupKey,
        sinceMs,
        inboxesOfIt ?? [inboxOf(name)],
      );
      await control.setGate(fence.epoch, tenant, nameOf(name), groupKey, true);
    },
    async deactivate(name: string, groupKey: string) {
      await control.setActivation(fence.epoch, clock.ms, nameOf(name), groupKey, null, []);
      await control.setGate(fence.epoch, tenant, nameOf(name), groupKey, false);
    },
    /** Ingests events by group key; answers their entries as the router reads them. */
    async ingest(groupKeys: readonly string[], body = 'body'): Promise<QueueEntry[]> {
      const config = await ingress.readQueue(tenant, QUEUE);
      if (config === null || config === 'unavailable') throw new Error('no queue');
      const events = groupKeys.map(groupKey => event(randomUUID(), groupKey, body));
      const { outcomes } = await ingress.ingest(tenant, QUEUE, config, events);
      return outcomes.map((outcome, i) => {
        if (outcome.answer !== 'OK') throw new Error(`ingest answered ${outcome.answer}`);
        return { id: idOfRef(outcome.ref), groupKey: groupKeys[i] as string, bytes: body.length };
      });
    },
    async own(owner = 'owner'): Promise<OwnedQueue> {
      const answer = await queues.own(ref, clock.ms, owner);
      if (answer.answer !== 'OK') throw new Error(`own answered ${answer.answer}`);
      return { ...ref, epoch: answer.epoch, gen: answer.gen };
    },
  };
}

export type Tenant = ReturnType<typeof createTenant>;

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

/** Items for `route`, by stream id. */
export function items(entries: readonly { readonly id: string; readonly groupKey: string }[]): RouteItem[] {
  return entries.map(({ id, groupKey }) => ({ ref: refOfStreamId(id), id, groupKey, tokens: 1 }));
}

const idOfRef = (ref: string): string => {
  const digits = '0123456789abcdefghjkmnpqrstvwxyz';
  const value = (text: string) => [...text].reduce((sum, char) => sum * 32 + digits.indexOf(char), 0);
  return `${value(ref.slice(0, 10))}-${value(ref.slice(10))}`;
};
