import type { TenantRoutes } from '../../core/routing/routes.ts';
import { keepUnowned, type RoutesPlan, type StoredRoutes } from '../../redis/control-plan.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import type { HintIndex } from '../../redis/hints.ts';
import { type InboxRef, inboxMember } from '../../redis/inbox-store.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';

/** A group key of an integration (`int_…`) that is open. */
export interface OpenGate {
  readonly groupKey: string;
  /** The time when the group key was opened, in milliseconds. It is only used if Redis does not have a time. */
  readonly sinceMs: number;
}

export interface ApplyDeps {
  readonly control: ControlStore;
  readonly nowMs: () => number;
  /** Returns the open group keys of each integration (`int_…`), as specified by the objects. */
  readonly openGates: (name: string) => ReadonlyMap<string, readonly OpenGate[]>;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /** Runs `restore` while activations of the tenant cannot be written. */
  readonly exclusively: (name: string, restore: () => Promise<void>) => Promise<void>;
}

export interface Application {
  readonly name: string;
  readonly fence: number;
  readonly stored: StoredRoutes;
  readonly plan: RoutesPlan;
  readonly wanted: TenantRoutes;
  /**
   * True if the routes were just read from Redis. In this case, changes that happened without a leader are also
   * repaired.
   */
  readonly first: boolean;
}

/**
 * Writes a plan to Redis. The routes are written first, followed by the activations if they may have been lost or if
 * there is a new leader. The ready markers are written after that, and the marker of the tenant is the last one. Events
 * are not routed until then and the ingress returns 503. This ensures that events are not processed with an incomplete
 * configuration.
 */
export async function applyRoutes(deps: ApplyDeps, application: Application): Promise<StoredRoutes> {
  const { control } = deps;
  const { name, fence, stored, plan, wanted, first } = application;
  await control.patch(fence, plan.patches);
  const concerned = withActivationsLost(application);
  if (concerned === 'all' || concerned.size > 0) {
    await deps.exclusively(name, () => restoreActivations(deps, application, concerned));
  }
  await control.patch(fence, plan.ready);
  const routes = keepUnowned(stored.routes, wanted);
  if (first) await control.enlist(fence, wanted.tenant);
  await wakeOpened(deps, application, first ? everyUnheld(routes) : plan.opened);
  const ready = new Set(stored.ready);
  for (const { meta } of plan.ready) ready.add(meta);
  return { routes, ready };
}

/**
 * Returns the integrations with open group keys that may be missing from Redis. These are the integrations that were
 * not ready in Redis. Returns `all` if all integrations must be checked.
 */
function withActivationsLost({ plan, wanted, stored, first }: Application): ReadonlySet<string> | 'all' {
  if (!first && plan.ready.length === 0) return new Set();
  const unready = new Set(plan.ready.map(({ meta }) => meta));
  if (first || unready.has(tenantKeys(wanted.tenant).meta)) return 'all';
  const names = [...Object.keys(wanted.integrations), ...Object.keys(stored.routes.integrations)];
  return new Set(names.filter(integration => unready.has(integrationKeys(integration).meta)));
}

/**
 * Updates the open group keys in Redis so that they match the objects. If all integrations are restored, the index of
 * the tenant is also updated to match exactly. Otherwise, only missing entries are added to the index.
 */
async function restoreActivations(
  deps: ApplyDeps,
  { name, fence, stored, wanted }: Application,
  concerned: ReadonlySet<string> | 'all',
): Promise<void> {
  const { control } = deps;
  const gates = deps.openGates(name);
  const tenant = tenantKeys(wanted.tenant);
  const wantedGates = new Set<string>();
  const integrations =
    concerned === 'all'
      ? new Set([...Object.keys(wanted.integrations), ...Object.keys(stored.routes.integrations)])
      : concerned;
  for (const integration of integrations) {
    const wantedKeys = new Map((gates.get(integration) ?? []).map(gate => [gate.groupKey, gate.sinceMs]));
    for (const groupKey of wantedKeys.keys()) wantedGates.add(`${groupKey}\0${integration}`);
    const i = integrationKeys(integration);
    const have = await control.readActivations(integration);
    const missing = [...wantedKeys].filter(([groupKey]) => !Number.isFinite(have.get(groupKey)));
    if (stored.ready.has(i.meta)) {
      const inboxes = inboxesOf(wanted, integration);
      for (const [groupKey, sinceMs] of missing) {
        await control.setActivation(fence, deps.nowMs(), integration, groupKey, sinceMs, inboxes);
      }
    } else {
      // Events cannot be parked in an integration that was not ready, so the activations can be written in bulk.
      const ops = missing.map(([groupKey, sinceMs]) => ({
        command: 'HSET' as const,
        key: i.act,
        args: [groupKey, sinceMs],
      }));
      if (ops.length > 0) await control.patch(fence, [{ meta: i.meta, ops }]);
    }
    for (const groupKey of have.keys()) {
      if (!wantedKeys.has(groupKey)) await control.setActivation(fence, deps.nowMs(), integration, groupKey, null, []);
    }
  }
  const haveGates = concerned === 'all' ? await control.readGates(wanted.tenant) : new Set<string>();
  const ops = [
    ...[...wantedGates]
      .filter(gate => !haveGates.has(gate))
      .map(gate => ({ command: 'ZADD' as const, key: tenant.gates, args: [0, gate] })),
    ...[...haveGates]
      .filter(gate => !wantedGates.has(gate))
      .map(gate => ({ command: 'ZREM' as const, key: tenant.gates, args: [gate] })),
  ];
  if (ops.length > 0) await control.patch(fence, [{ meta: tenant.meta, ops }]);
}

/** Returns the inboxes of an integration with the queue that each inbox belongs to. */
export function inboxesOf(routes: TenantRoutes, integration: string): (InboxRef & { readonly queue: string })[] {
  const subscriptions = routes.integrations[integration]?.subscriptions ?? {};
  return Object.entries(subscriptions).map(([sub, { inc, queue }]) => ({ integration, sub, inc, queue }));
}

/**
 * Returns all open and closed subscriptions. This is used because an earlier leader may have stopped after it closed a
 * subscription but before it woke the queue.
 */
function everyUnheld(routes: TenantRoutes): RoutesPlan['opened'] {
  return Object.entries(routes.integrations).flatMap(([integration, { subscriptions }]) =>
    Object.entries(subscriptions)
      .filter(([, { route, queue }]) => route !== 'paused' && Object.hasOwn(routes.queues, queue))
      .map(([sub, { inc, queue }]) => ({ queue, integration, sub, inc })),
  );
}

/**
 * Wakes the router and the dispatcher after the routes have been written. This is done for all queues and inboxes that
 * may not be up to date.
 */
async function wakeOpened(
  deps: ApplyDeps,
  { fence, wanted }: Application,
  opened: RoutesPlan['opened'],
): Promise<void> {
  if (opened.length === 0) return;
  const nowMs = deps.nowMs();
  const byQueue = Map.groupBy(opened, each => each.queue);
  for (const [queue, subs] of byQueue) {
    await deps.control.wake(fence, wanted.tenant, queue, subs);
  }
  await deps.queueHints.lower(
    [...byQueue.keys()].map(queue => ({ member: `${wanted.tenant}:${queue}`, dueMs: nowMs })),
  );
  await deps.inboxHints.lower(
    opened.map(each => ({ member: inboxMember(each), dueMs: nowMs, home: `${wanted.tenant}:${each.queue}` })),
  );
}
