import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { RoutesPlan, StoredRoutes } from '../../record/control-plan.ts';
import type { ControlStore } from '../../record/control-store.ts';
import { type OpenKey, type OpenKeySource, openKeysOf } from '../../record/open-keys.ts';
import { keepUnowned } from '../../record/unowned-routes.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';
import { inSlices, type Steps } from '../../time/slices.ts';

export interface ApplyDeps {
  readonly control: ControlStore;
  readonly nowMs: () => number;
  /**
   * Returns the open group keys according to the objects. The times in the objects are only used if Redis does not
   * contain them.
   */
  readonly openGates: (name: string) => OpenKeySource;
  /** Runs `restore`. In the meantime, the activations of the tenant can't be written. */
  readonly exclusively: (name: string, restore: () => Promise<void>) => Promise<void>;
}

export interface Application {
  readonly name: string;
  readonly fence: number;
  readonly stored: StoredRoutes;
  readonly plan: RoutesPlan;
  readonly wanted: TenantRoutes;
  /**
   * True if the routes have just been read from Redis. In this case, changes made while there was no leader also need
   * to be repaired.
   */
  readonly first: boolean;
}

/**
 * Writes a plan to Redis. The routes are written first, followed by the activations (if they may have been lost, or if
 * there is a new leader) and the ready markers. The marker of the tenant itself is written last. Until this has been
 * completed, no events are routed and ingress returns 503. The order ensures that events are never processed with an
 * incomplete configuration.
 */
export async function applyRoutes(deps: ApplyDeps, application: Application): Promise<StoredRoutes> {
  const { control } = deps;
  const { name, fence, stored, plan, wanted, first } = application;
  const routes = keepUnowned(stored.routes, wanted);
  const concerned = withActivationsLost(application);
  let gates: OpenKeySource | undefined;
  // Reads both the parts and the record, so that activations that are missing from one of them are added.
  const openGates = () => (gates ??= deps.openGates(name));
  const write = async () => {
    // If the parts can't be written, the record is still required to find out that a pause has ended. For this reason,
    // it is changed later.
    await control.applyParts({ fence, have: stored.routes, want: routes, isKnown: !first, openKeys: openGates });
    await control.patch(fence, plan.patches);
    await restoreActivations(deps, application, concerned, openGates);
  };
  await deps.exclusively(name, write);
  await control.patch(fence, plan.ready);
  if (first) await control.enlist(fence, wanted.tenant);
  const ready = new Set(stored.ready);
  for (const { meta } of plan.ready) ready.add(meta);
  return { routes, ready };
}

/**
 * Returns all integrations with open group keys that may be missing from Redis because they were not ready there. After
 * the first read, this returns all integrations.
 */
function withActivationsLost({ plan, wanted, stored, first }: Application): ReadonlySet<string> {
  if (!first && plan.ready.length === 0) return new Set();
  const unready = new Set(plan.ready.map(({ meta }) => meta));
  const all = new Set([...Object.keys(wanted.integrations), ...Object.keys(stored.routes.integrations)]);
  if (first || unready.has(tenantKeys(wanted.tenant).meta)) return all;
  return new Set([...all].filter(integration => unready.has(integrationKeys(integration).meta)));
}

/** Updates the open group keys recorded in Redis to match the objects. */
async function restoreActivations(
  deps: ApplyDeps,
  { fence, stored }: Application,
  concerned: ReadonlySet<string>,
  openGates: () => OpenKeySource,
): Promise<void> {
  const { control } = deps;
  for (const integration of concerned) {
    const i = integrationKeys(integration);
    const have = await control.readActivations(integration);
    const { missing, unwanted } = await inSlices(compareActivations(openGates(), integration, have));
    if (stored.ready.has(i.meta)) {
      for (const { groupKey, sinceMs } of missing) {
        await control.setActivation(fence, integration, groupKey, sinceMs);
      }
    } else {
      // If an integration was not ready, it can't have any parked events. Therefore, it is safe to write all of its
      // activations at once.
      const ops = missing.map(({ groupKey, sinceMs }) => ({
        command: 'HSET' as const,
        key: i.act,
        args: [groupKey, sinceMs],
      }));
      if (ops.length > 0) await control.patch(fence, [{ meta: i.meta, ops }]);
    }
    for (const groupKey of unwanted) await control.setActivation(fence, integration, groupKey, null);
  }
}

/** Returns the differences between the open group keys and those in Redis. There may be 100,000 of them. */
export function* compareActivations(
  gates: OpenKeySource,
  integration: string,
  have: ReadonlyMap<string, number>,
): Steps<{ readonly missing: readonly OpenKey[]; readonly unwanted: ReadonlySet<string> }> {
  const missing: OpenKey[] = [];
  const unwanted = new Set(have.keys());
  for (const gate of yield* openKeysOf(gates, integration)) {
    unwanted.delete(gate.groupKey);
    if (!Number.isFinite(have.get(gate.groupKey))) missing.push(gate);
    yield;
  }
  return { missing, unwanted };
}
