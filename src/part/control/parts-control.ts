import type { SubscriptionRoute, TenantRoutes } from '../../core/routing/routes.ts';
import { type InboxRef, inboxMember } from '../../plane/inbox-ref.ts';
import type { ControlRecord, ControlStore } from '../../record/control-store.ts';
import { withoutSubscription } from '../../record/tenant-index.ts';
import type { RedisClient } from '../../redis/client.ts';
import { accountKeys } from '../../redis/keys.ts';
import { inSlices, type Steps } from '../../time/slices.ts';
import type { GateChange } from '../gate/gate.ts';
import { type FindStream, readPart } from '../inbox/find-part.ts';
import { type Part, partKeys, slotOf } from '../keys.ts';
import { createSubscriptionStates } from '../state/subscriptions.ts';
import { createDrain } from '../sweep/drain.ts';
import { createTokens } from '../tokens/tokens.ts';
import { createOpenPairs } from './open-pairs.ts';
import { createPartWriter, type OnLoss } from './part-writer.ts';
import { createSetActivation, type Place } from './set-activation.ts';
import { partOf } from './wanted-part.ts';

/** The number of times that tokens are taken back from streams. Each time, up to 64 streams return theirs. */
const MOST_RECLAIMS = 32;

/** The routes of all tenants after the last read or write, by tenant and by integration. */
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
    /** The subscription was deleted. Activations are not written for it any more. */
    drop(inbox: InboxRef): void {
      const routes = byTenant.get(tenantOf.get(inbox.integration) ?? '');
      if (routes !== undefined) byTenant.set(routes.tenant, withoutSubscription(routes, inbox));
    },
    /** Returns the locations of all subscriptions of an integration. */
    placesOf(integration: string): Place[] {
      const routes = byTenant.get(tenantOf.get(integration) ?? '');
      const subscriptions = routes?.integrations[integration]?.subscriptions ?? {};
      return Object.entries(subscriptions).flatMap(([sub, route]) => placeOf(routes as TenantRoutes, sub, route));
    },
    /** Returns the part of a stream. If it is not known, this returns undefined. */
    partOf(tenant: string, queue: string): Part | undefined {
      const queues = byTenant.get(tenant)?.queues ?? {};
      const route = Object.hasOwn(queues, queue) ? queues[queue] : undefined;
      return route && partOf(tenant, queue, route);
    },
    /**
     * Returns the subscription location. If it is not known, or if its stream was deleted, this returns undefined.
     */
    find({ integration, sub, inc }: InboxRef): Place | undefined {
      const routes = byTenant.get(tenantOf.get(integration) ?? '');
      const route = routes?.integrations[integration]?.subscriptions[sub];
      return route === undefined || route.inc !== inc ? undefined : placeOf(routes as TenantRoutes, sub, route)[0];
    },
  };
}

/** Returns the changes that close all of these group keys for a slot. There may be 100,000 of them. */
function* closingChanges(slot: string, sources: readonly Iterable<string>[]): Steps<GateChange[]> {
  const closed = new Set<string>();
  const changes: GateChange[] = [];
  for (const groupKeys of sources) {
    for (const groupKey of groupKeys) {
      yield;
      if (closed.has(groupKey)) continue;
      closed.add(groupKey);
      changes.push({ kind: 'off', slot, groupKey });
    }
  }
  return changes;
}

export interface PartsControl extends ControlStore {
  /** Returns a subscription's stream. If it is not known, this returns undefined. */
  readonly findStream: FindStream;
}

/**
 * Creates a ControlStore. Everything that affects routing is written to the parts and to the record. The record is
 * written before opening changes and after closing ones. If the controller crashes in between, the record still shows
 * what to repair.
 */
export function createPartsControl(
  redis: RedisClient,
  record: ControlRecord,
  nowMs: () => number,
  onLoss?: OnLoss,
): PartsControl {
  const { forgetQueue, forgetInbox, ...rest } = record;
  const writer = createPartWriter(redis, record.patch, onLoss);
  const drain = createDrain(redis);
  const { recallAll } = createTokens(redis);
  const known = createKnownRoutes();
  const pairs = createOpenPairs();

  const findStream: FindStream = inbox => known.find(inbox)?.part;

  return {
    ...rest,
    readHealth: createSubscriptionStates(redis, findStream).readHealth,
    findStream,

    async readTenant(tenant, fence, remembered) {
      const stored = await record.readTenant(tenant, fence, remembered);
      known.note(stored.routes);
      return stored;
    },

    async applyParts(change) {
      // All activations that are written from now on must also be written to the parts that are being added.
      known.note(change.want);
      await pairs.follow(change, openKeys => writer.write({ ...change, openKeys, nowMs: nowMs() }));
    },

    closeParts: (fence, routes, openKeys) => writer.close(fence, routes, openKeys),

    setActivation: createSetActivation({ redis, record, writer, placesOf: each => known.placesOf(each), pairs }),

    async reclaimTokens(account) {
      for (let reclaims = 0; reclaims < MOST_RECLAIMS; reclaims++) {
        const hold = await redis.readHash(accountKeys(account).hold);
        const held = Object.values(hold).reduce((sum, tokens) => sum + Number(tokens), 0);
        if (held === 0) return;
        const { remainingTokens = Number.POSITIVE_INFINITY } = (await record.readBalance(account)) ?? {};
        if (held <= remainingTokens) return;
        await recallAll(account, nowMs());
      }
    },

    async readDrain(tenant, queue) {
      const part = await readPart(redis, tenant, queue);
      if (part !== undefined) return drain.read(part);
      // If the `meta` of a part has been lost, the remaining work in it is unknown until the `meta` has been written
      // again.
      const lost = known.partOf(tenant, queue);
      const isLost = lost !== undefined && (await redis.call('exists', partKeys(lost).log)) === 1;
      return { unrouted: isLost ? 1 : 0, open: 0 };
    },

    async dropQueue(fence, tenant, queue, gen) {
      await writer.remove(partOf(tenant, queue, { gen }), fence, nowMs());
      await forgetQueue(fence, tenant, queue);
    },

    async dropInbox(fence, tenant, inbox, keepMs) {
      const place = known.find(inbox);
      if (place !== undefined) {
        const { part, slot } = place;
        const how = keepMs === 0 ? { how: 'delete' as const } : {};
        // After this, the gate does not activate anything for the slot. All earlier activations are recorded.
        await writer.change(part, fence, [{ kind: 'drop', slot, inbox: inboxMember(inbox), ...how }]);
        // A part only contains the activations of its own subscriptions. If there are any others, the audit considers
        // this to be damage.
        const recorded = await record.readActivations(inbox.integration);
        const open = [recorded.keys(), pairs.of(inbox.integration)];
        await writer.change(part, fence, await inSlices(closingChanges(slot, open)));
        known.drop(inbox);
      }
      await forgetInbox(fence, tenant, inbox);
    },
  };
}
