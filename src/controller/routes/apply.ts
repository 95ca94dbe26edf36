import type { TenantRoutes } from '../../core/routing/routes.ts';
import { keepUnowned, type RoutesPlan, type StoredRoutes } from '../../redis/control-plan.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import type { HintIndex } from '../../redis/hints.ts';
import { type InboxRef, inboxMember } from '../../redis/inbox-store.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';

/** An open group key of an integration (`int_…`). */
export interface OpenGate {
  readonly groupKey: string;
  /** When it was opened, ms; used if Redis has no time. */
  readonly sinceMs: number;
}

export interface ApplyDeps {
  readonly control: ControlStore;
  readonly nowMs: () => number;
  /** `int_…` → its open group keys, from the objects. */
  readonly openGates: (name: string) => ReadonlyMap<string, readonly OpenGate[]>;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /** Runs `restore` while no activation of the tenant is being written. */
  readonly exclusively: (name: string, restore: () => Promise<void>) => Promise<void>;
}

export interface Application {
  readonly name: string;
  readonly fence: number;
  readonly stored: StoredRoutes;
  readonly plan: RoutesPlan;
  readonly wanted: TenantRoutes;
  /** Redis was just read: repair what happened without a leader. */
  readonly first: boolean;
}

/**
 * Writes a plan: routes, then (after a loss, or for a new leader) the activations, then the ready markers, the tenant's
 * last. Until then nothing is routed and ingress answers 503, so no event meets half a configuration.
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

/** Returns integrations whose open group keys may be missing in Redis: those that were not ready there, or all. */
function withActivationsLost({ plan, wanted, stored, first }: Application): ReadonlySet<string> | 'all' {
  if (!first && plan.ready.length === 0) return new Set();
  const unready = new Set(plan.ready.map(({ meta }) => meta));
  if (first || unready.has(tenantKeys(wanted.tenant).meta)) return 'all';
  const names = [...Object.keys(wanted.integrations), ...Object.keys(stored.routes.integrations)];
  return new Set(names.filter(integration => unready.has(integrationKeys(integration).meta)));
}

/**
 * Makes the open group keys in Redis those of the objects. For all integrations the tenant's index becomes exact; for
 * some, only missing entries are added to it.
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
      // No event is parked in an integration that was not ready: write in bulk.
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

/** Returns the inboxes of an integration, each with its queue. */
export function inboxesOf(routes: TenantRoutes, integration: string): (InboxRef & { readonly queue: string })[] {
  const subscriptions = routes.integrations[integration]?.subscriptions ?? {};
  return Object.entries(subscriptions).map(([sub, { inc, queue }]) => ({ integration, sub, inc, queue }));
}

/** Returns open and closed subscriptions: an earlier leader may have stopped between closing and waking. */
function everyUnheld(routes: TenantRoutes): RoutesPlan['opened'] {
  return Object.entries(routes.integrations).flatMap(([integration, { subscriptions }]) =>
    Object.entries(subscriptions)
      .filter(([, { route, queue }]) => route !== 'paused' && Object.hasOwn(routes.queues, queue))
      .map(([sub, { inc, queue }]) => ({ queue, integration, sub, inc })),
  );
}

/** Wakes router and dispatcher after the routes were written, for queues and inboxes that may be behind. */
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
