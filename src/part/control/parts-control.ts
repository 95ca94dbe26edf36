import type { SubscriptionRoute, TenantRoutes } from '../../core/routing/routes.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import type { InboxRef } from '../../redis/inbox-store.ts';
import { integrationKeys } from '../../redis/keys.ts';
import type { GateChange } from '../gate/gate.ts';
import { type FindStream, readPart } from '../inbox/find-part.ts';
import { type Part, slotOf } from '../keys.ts';
import { createSubscriptionStates } from '../state/subscriptions.ts';
import { createDrain } from '../sweep/drain.ts';
import { createPartWriter, forEach } from './part-writer.ts';
import { partOf } from './wanted-part.ts';

/** A subscription's slot in a part. */
interface Place {
  readonly part: Part;
  readonly slot: string;
}

/** Routes of tenants as they were last read or written, by tenant and by integration. */
function createKnownRoutes() {
  const byTenant = new Map<string, TenantRoutes>();
  const tenantOf = new Map<string, string>();

  function placeOf({ tenant, queues }: TenantRoutes, sub: string, { queue, inc }: SubscriptionRoute): Place[] {
    const route = Object.hasOwn(queues, queue) ? queues[queue] : undefined;
    return route === undefined ? [] : [{ part: partOf(tenant, queue, route), slot: slotOf(sub, inc) }];
  }

  return {
    note(routes: TenantRoutes): void {
      byTenant.set(routes.tenant, routes);
      for (const integration of Object.keys(routes.integrations)) tenantOf.set(integration, routes.tenant);
    },
    /** Returns where the subscriptions of an integration are. */
    placesOf(integration: string): Place[] {
      const routes = byTenant.get(tenantOf.get(integration) ?? '');
      const subscriptions = routes?.integrations[integration]?.subscriptions ?? {};
      return Object.entries(subscriptions).flatMap(([sub, route]) => placeOf(routes as TenantRoutes, sub, route));
    },
    /** Returns where a subscription is, or undefined if its stream is gone or nobody knows it. */
    find({ integration, sub, inc }: InboxRef): Place | undefined {
      const routes = byTenant.get(tenantOf.get(integration) ?? '');
      const route = routes?.integrations[integration]?.subscriptions[sub];
      return route === undefined || route.inc !== inc ? undefined : placeOf(routes as TenantRoutes, sub, route)[0];
    },
  };
}

export interface PartsControl extends ControlStore {
  /** Returns the stream of a subscription, or undefined if nobody knows it. */
  readonly findStream: FindStream;
}

/**
 * Creates a ControlStore for streams whose events are in parts. `control` keeps the record of what was applied. Whatever
 * decides about events is also written to the parts: opening changes after the record, closing changes before it, so that a
 * controller that dies in between leaves something to repair that the record tells of.
 */
export function createPartsControl(redis: RedisClient, control: ControlStore, nowMs: () => number): PartsControl {
  const writer = createPartWriter(redis, control.patch);
  const drain = createDrain(redis);
  const known = createKnownRoutes();
  /** Pairs that may have reached only some of their parts. */
  const unfinished = new Set<string>();

  const findStream: FindStream = inbox => known.find(inbox)?.part;

  async function changeAll(integration: string, fence: number, change: (slot: string) => GateChange): Promise<void> {
    await forEach(known.placesOf(integration), ({ part, slot }) => writer.change(part, fence, [change(slot)]));
  }

  return {
    ...control,
    readHealth: createSubscriptionStates(redis, findStream).readHealth,
    findStream,

    async readTenant(tenant, fence, remembered) {
      const stored = await control.readTenant(tenant, fence, remembered);
      known.note(stored.routes);
      return stored;
    },

    async applyParts(change) {
      // Activations that are written from now on must reach what is added.
      known.note(change.want);
      await writer.write({ ...change, nowMs: nowMs() });
    },

    async setActivation(fence, atMs, integration, groupKey, sinceMs) {
      const pair = `${groupKey}\0${integration}`;
      const again = unfinished.has(pair);
      if (sinceMs === null) {
        const has = await redis.call('hexists', integrationKeys(integration).act, groupKey);
        if (has === 0 && !again) return false;
      }
      // Until all of it is known to be written. A command without an answer may be carried out all the same.
      unfinished.add(pair);
      const opened = sinceMs !== null && (await control.setActivation(fence, atMs, integration, groupKey, sinceMs, []));
      if (sinceMs === null || opened || again) {
        await changeAll(integration, fence, slot => ({ kind: sinceMs === null ? 'off' : 'on', slot, groupKey }));
      }
      const closed = sinceMs === null && (await control.setActivation(fence, atMs, integration, groupKey, null, []));
      unfinished.delete(pair);
      return opened || closed;
    },

    // The part itself wakes its dispatchers.
    wake: async () => {},
    readBehind: async () => new Set(),

    async readDrain(tenant, queue) {
      const part = await readPart(redis, tenant, queue);
      return part === undefined ? { unrouted: 0, open: 0 } : drain.read(part);
    },

    async dropQueue(fence, tenant, queue, gen) {
      await writer.remove(partOf(tenant, queue, { gen }), fence, nowMs());
      await control.dropQueue(fence, tenant, queue, gen);
    },

    async dropInbox(fence, tenant, inbox, keepMs) {
      const place = known.find(inbox);
      if (place !== undefined) {
        const how = keepMs === 0 ? { how: 'delete' as const } : {};
        await writer.change(place.part, fence, [{ kind: 'drop', slot: place.slot, ...how }]);
      }
      await control.dropInbox(fence, tenant, inbox, keepMs);
    },
  };
}
