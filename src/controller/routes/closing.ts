import { type ClosedTenant, closeSteps } from '../../core/routing/close-routes.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import type { Steps } from '../../core/routing/steps.ts';
import type { AnyObject } from '../../kube/object.ts';
import { type Fields, planSteps, type StoredRoutes } from '../../record/control-plan.ts';
import type { OpenKeySource } from '../../record/open-keys.ts';
import { subscribersOf } from '../../record/tenant-index.ts';
import { tenantKeys } from '../../redis/keys.ts';
import { inSlices } from '../../time/slices.ts';
import { type ApplyDeps, applyRoutes, compareActivations } from './apply.ts';
import { withVersions } from './versions.ts';

/** The result of closing the tenant routes while its workspace is paused. */
export interface Closing {
  /** The routes in Redis after writing the changes. */
  readonly stored: StoredRoutes;
  readonly closed: ClosedTenant['closed'];
  readonly paused: ClosedTenant['paused'];
  /** Objects taken into account, formatted as uid@generation. */
  readonly seen: ReadonlySet<string>;
  /** When the objects were read. */
  readonly atMs: number;
}

export interface ClosingDeps extends ApplyDeps {
  /** Returns the snapshot at the time of this call. */
  readonly gather: (name: string) => Steps<TenantSnapshot>;
  /** Returns all objects in the snapshot of a tenant at the time of this call. */
  readonly objectsOf: (name: string) => Iterable<AnyObject>;
  /** Returns true if all Secrets of the workspace that contain ingress keys have been read. */
  readonly knowsKeys: (name: string) => boolean;
}

/**
 * Applies only those changes of a paused tenant which close a route. Neither writes changes that open a route, nor
 * restores data lost by Redis.
 *
 * @param stored the routes in Redis
 * @param fresh whether `stored` was just read
 */
export async function applyClosing(
  deps: ClosingDeps,
  { name, fence, stored, fresh }: { name: string; fence: number; stored: StoredRoutes; fresh: boolean },
): Promise<Closing> {
  const nowMs = deps.nowMs();
  if (fresh) await deps.exclusively(name, () => closeStaleGates(deps, name, fence, stored.routes));
  const knowsKeys = deps.knowsKeys(name);
  const gathering = deps.gather(name);
  const closing = (function* () {
    const snapshot = yield* gathering;
    return yield* closeSteps(stored.routes, knowsKeys ? snapshot : withoutWorkspace(snapshot), nowMs);
  })();
  const objects = [...deps.objectsOf(name)].filter(object => knowsKeys || object.metadata.namespace !== undefined);
  const { seen, result } = await withVersions(objects, closing);
  const { routes, closed, paused } = result;
  if (fresh) await deps.exclusively(name, () => closeParts(deps, name, fence, routes));
  const left = staleSubscribers(stored);
  // All other differences will be repaired when the pause has ended.
  const had: StoredRoutes = {
    routes: stored.routes,
    ready: stored.ready,
    ...(left.size === 0 ? {} : { hashes: left }),
  };
  if (routes === stored.routes && left.size === 0) return { stored: had, closed, paused, seen, atMs: nowMs };
  const plan = { ...(await inSlices(planSteps(had, routes))), ready: [] };
  const written = await applyRoutes(deps, { name, fence, stored: had, plan, wanted: routes, first: false });
  return { stored: written, closed, paused, seen, atMs: nowMs };
}

/** Ensures that no ingress key is closed, because the keys in Secrets are not known. */
function withoutWorkspace(snapshot: TenantSnapshot): TenantSnapshot {
  const { workspace: _, ...rest } = snapshot;
  return rest;
}

/**
 * Closes all open group keys in Redis that are not opened by an object. The workers are not aware of them, because
 * their Activations were deleted while there was no leader.
 */
async function closeStaleGates(deps: ClosingDeps, name: string, fence: number, routes: TenantRoutes): Promise<void> {
  const { control } = deps;
  const gates = deps.openGates(name);
  for (const integration of Object.keys(routes.integrations)) {
    const have = await control.readActivations(integration);
    const { unwanted } = await inSlices(compareActivations(gates, integration, have));
    for (const groupKey of unwanted) await control.setActivation(fence, integration, groupKey, null);
  }
}

/** Closes everything in the parts which is not opened by these routes or by the objects. */
function closeParts({ control, openGates }: ClosingDeps, name: string, fence: number, routes: TenantRoutes) {
  let gates: OpenKeySource | undefined;
  return control.closeParts(fence, routes, () => (gates ??= openGates(name)));
}

/**
 * Returns the subscriber lists with stale entries, by key. Each list includes both stale and correct entries. Stale
 * entries are left behind when a controller stops while closing routes.
 */
function staleSubscribers({ routes, hashes }: StoredRoutes): Map<string, Fields> {
  const left = new Map<string, Fields>();
  const t = tenantKeys(routes.tenant);
  for (const [queue, subscribers] of Object.entries(subscribersOf(routes))) {
    const key = t.subs(queue);
    const stale = Object.entries(hashes?.get(key) ?? {}).filter(([integration]) => !(integration in subscribers));
    if (stale.length > 0) left.set(key, { ...subscribers, ...Object.fromEntries(stale) });
  }
  return left;
}

/** Returns the UIDs of all Subscriptions and Blocks whose status has changed. */
export function changedByClosing(had: Closing | undefined, has: Closing): Set<string> {
  const changed = new Set<string>();
  for (const [uid, how] of has.closed) if (had?.closed.get(uid) !== how) changed.add(uid);
  for (const [uid, count] of has.paused) if (had?.paused.get(uid) !== count) changed.add(uid);
  return changed;
}

/** The routes of a tenant that have been applied. Also covers paused tenants. */
export interface InForce {
  readonly routes: TenantRoutes;
  readonly paused: ReadonlyMap<string, number>;
}
