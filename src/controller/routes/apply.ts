import type { TenantRoutes } from '../../core/routing/routes.ts';
import { keepUnowned, type RoutesPlan, type StoredRoutes } from '../../record/control-plan.ts';
import type { ControlStore } from '../../record/control-store.ts';
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
    await control.applyParts({ fence, have: stored.routes, want: routes, isKnown: !first, openKeys: openGates });
    await control.patch(fence, plan.patches);
    if (isAny(concerned)) await restoreActivations(deps, application, concerned, openGates());
  };
  await deps.exclusively(name, write);
  await control.patch(fence, plan.ready);
  if (first) await control.enlist(fence, wanted.tenant);
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
 * Updates the open group keys that are recorded in Redis to match the objects.
 */
async function restoreActivations(
  deps: ApplyDeps,
  { fence, stored, wanted }: Application,
  concerned: ReadonlySet<string> | 'all',
  gates: ReturnType<ApplyDeps['openGates']>,
): Promise<void> {
  const { control } = deps;
  const integrations =
    concerned === 'all'
      ? new Set([...Object.keys(wanted.integrations), ...Object.keys(stored.routes.integrations)])
      : concerned;
  for (const integration of integrations) {
    const wantedKeys = new Map((gates.get(integration) ?? []).map(gate => [gate.groupKey, gate.sinceMs]));
    const i = integrationKeys(integration);
    const have = await control.readActivations(integration);
    const missing = [...wantedKeys].filter(([groupKey]) => !Number.isFinite(have.get(groupKey)));
    if (stored.ready.has(i.meta)) {
      for (const [groupKey, sinceMs] of missing) {
        await control.setActivation(fence, integration, groupKey, sinceMs);
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
      if (!wantedKeys.has(groupKey)) await control.setActivation(fence, integration, groupKey, null);
    }
  }
}
