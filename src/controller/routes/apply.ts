import type { TenantRoutes } from '../../core/routing/routes.ts';
import { keepUnowned, type RoutesPlan, type StoredRoutes } from '../../redis/control-plan.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import type { HintIndex } from '../../redis/hints.ts';
import { type InboxRef, inboxMember } from '../../redis/inbox-store.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';

/** An integration's (`int_…`) open group key. */
export interface OpenGate {
  readonly groupKey: string;
  /** When the group key was opened, in milliseconds. Only used if Redis doesn't have a time. */
  readonly sinceMs: number;
}

export interface ApplyDeps {
  readonly control: ControlStore;
  readonly nowMs: () => number;
  /** Returns each integration's (`int_…`) open group keys, as specified by the objects. */
  readonly openGates: (name: string) => ReadonlyMap<string, readonly OpenGate[]>;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /** Runs `restore` while preventing writes to the tenant's activations. */
  readonly exclusively: (name: string, restore: () => Promise<void>) => Promise<void>;
}

export interface Application {
  readonly name: string;
  readonly fence: number;
  readonly stored: StoredRoutes;
  readonly plan: RoutesPlan;
  readonly wanted: TenantRoutes;
  /**
   * Whether the routes were just read from Redis, in which case we also repair changes made while there was no leader.
   */
  readonly first: boolean;
}

/**
 * Writes a plan to Redis. Routes come first, followed by the activations if they may have been lost or there is a new
 * leader, and then the ready markers, with the tenant's own marker last. Until then, no events are routed and ingress
 * returns 503, so that events are never processed with an incomplete configuration.
 */
export async function applyRoutes(deps: ApplyDeps, application: Application): Promise<StoredRoutes> {
  const { control } = deps;
  const { name, fence, stored, plan, wanted, first } = application;
  const routes = keepUnowned(stored.routes, wanted);
  const concerned = withActivationsLost(application);
  let gates: ReturnType<ApplyDeps['openGates']> | undefined;
  // The same for parts and record: an activation that one of them misses would never reach it.
  const openGates = () => (gates ??= deps.openGates(name));
  const write = async () => {
    // What the record says about the end of a pause is needed again if parts can't be written, so it is changed afterwards.
    await control.applyParts?.({ fence, have: stored.routes, want: routes, isKnown: !first, openKeys: openGates });
    await control.patch(fence, plan.patches);
    if (isAny(concerned)) await restoreActivations(deps, application, concerned, openGates());
  };
  await (control.applyParts !== undefined || isAny(concerned) ? deps.exclusively(name, write) : write());
  await control.patch(fence, plan.ready);
  if (first) await control.enlist(fence, wanted.tenant);
  await wakeOpened(deps, application, first ? everyUnheld(routes) : plan.opened);
  const ready = new Set(stored.ready);
  for (const { meta } of plan.ready) ready.add(meta);
  return { routes, ready };
}

/**
 * Returns the integrations that might be missing open group keys in Redis, i.e. those that were not ready there.
 * Returns `all` if every integration must be checked.
 */
function withActivationsLost({ plan, wanted, stored, first }: Application): ReadonlySet<string> | 'all' {
  if (!first && plan.ready.length === 0) return new Set();
  const unready = new Set(plan.ready.map(({ meta }) => meta));
  if (first || unready.has(tenantKeys(wanted.tenant).meta)) return 'all';
  const names = [...Object.keys(wanted.integrations), ...Object.keys(stored.routes.integrations)];
  return new Set(names.filter(integration => unready.has(integrationKeys(integration).meta)));
}

function isAny(concerned: ReadonlySet<string> | 'all'): boolean {
  return concerned === 'all' || concerned.size > 0;
}

/**
 * Updates the open group keys in Redis to match the objects. When all integrations are restored, the tenant's index
 * will match exactly; otherwise we only add missing entries to it.
 */
async function restoreActivations(
  deps: ApplyDeps,
  { fence, stored, wanted }: Application,
  concerned: ReadonlySet<string> | 'all',
  gates: ReturnType<ApplyDeps['openGates']>,
): Promise<void> {
  const { control } = deps;
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
      // Events can't be parked in an integration that wasn't ready, so it is safe to write the activations in bulk.
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

/** Returns an integration's inboxes and the queue each of them belongs to. */
export function inboxesOf(routes: TenantRoutes, integration: string): (InboxRef & { readonly queue: string })[] {
  const subscriptions = routes.integrations[integration]?.subscriptions ?? {};
  return Object.entries(subscriptions).map(([sub, { inc, queue }]) => ({ integration, sub, inc, queue }));
}

/**
 * Returns all open and closed subscriptions. Needed because an earlier leader may have stopped after closing a
 * subscription but before waking its queue.
 */
function everyUnheld(routes: TenantRoutes): RoutesPlan['opened'] {
  return Object.entries(routes.integrations).flatMap(([integration, { subscriptions }]) =>
    Object.entries(subscriptions)
      .filter(([, { route, queue }]) => route !== 'paused' && Object.hasOwn(routes.queues, queue))
      .map(([sub, { inc, queue }]) => ({ queue, integration, sub, inc })),
  );
}

/**
 * Wakes the router and dispatcher once the routes have been written, for every queue and inbox that might not be up to
 * date.
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
