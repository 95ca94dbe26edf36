import { tenantId } from '../../core/ids/ids.ts';
import type { CompiledTenant } from '../../core/routing/compile-routes.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import type { AnyObject } from '../../kube/object.ts';
import { planRoutes } from '../../record/control-plan.ts';
import type { ControlStore } from '../../record/control-store.ts';
import { type ApplyDeps, applyRoutes } from './apply.ts';
import { applyClosing, changedByClosing } from './closing.ts';
import { keepLost } from './lost-routes.ts';
import { changedObjects, isEmpty, type Tenant, versionOf } from './tenant.ts';

export interface SyncDeps extends ApplyDeps {
  readonly control: ControlStore;
  /**
   * Reads the data required by `gather` that is not in the caches. Rejects if the routes can't be compiled yet. In this
   * case, the routes in Redis do not change. If other data can't be read, `gather` reports it.
   */
  readonly prepare: (name: string) => Promise<void>;
  readonly gather: (name: string) => TenantSnapshot;
  readonly compile: (name: string, nowMs: number) => CompiledTenant;
  /** Whether the workspace is paused. In this case, we are only allowed to write changes that close a route. */
  readonly isPaused: (name: string) => boolean;
  /** Returns all objects in the snapshot of a tenant. */
  readonly objectsOf: (name: string) => Iterable<AnyObject>;
  /** Returns the fencing epoch of this leader. Throws an error if it is not allowed to write. */
  readonly fence: () => number;
  /** Returns the error for statuses if Redis has failed. */
  readonly explain: (error: unknown) => unknown;
  /** Called if the tenant routes have changed or could not be applied, because statuses may need to be updated. */
  readonly onChanged: (name: string, uids: ReadonlySet<string> | 'all') => void;
}

/** Compiles the routes from all objects of a tenant and writes the changes to Redis. */
export async function syncTenant(deps: SyncDeps, tenant: Tenant): Promise<void> {
  const { name } = tenant;
  if (deps.isPaused(name)) return syncPaused(deps, tenant);
  tenant.closing = undefined;
  try {
    // Only compile the routes if writes are allowed.
    deps.fence();
  } catch (error) {
    throw markFailed(deps, tenant, error);
  }
  await deps.prepare(name);
  const seen = versionsOf(deps, name);
  const compiled = deps.compile(name, deps.nowMs());
  const { compiled: had, failed } = tenant;
  let written: boolean;
  try {
    written = await write(deps, tenant, compiled);
  } catch (error) {
    throw markFailed(deps, tenant, error);
  }
  tenant.compiled = compiled;
  tenant.seen = seen;
  if (!written) return;
  tenant.failed = false;
  deps.onChanged(name, failed || had === undefined ? 'all' : changedObjects(had, compiled));
}

/** Writes the routes. Returns false if the tenant has no routes, neither in Redis nor in its objects. */
async function write(deps: SyncDeps, tenant: Tenant, compiled: CompiledTenant): Promise<boolean> {
  const { name, remembered } = tenant;
  const fence = deps.fence();
  // A tenant without any previous routes is treated as if we hadn't read it yet.
  const first = tenant.stored === undefined || isEmpty(tenant.stored.routes);
  const known = remembered === undefined ? [compiled.routes] : [compiled.routes, remembered];
  const stored = tenant.stored ?? (await deps.control.readTenant(tenantId(name), fence, known));
  // The routes in Redis are unknown until all changes have been written.
  tenant.stored = undefined;
  if (isEmpty(stored.routes) && isEmpty(compiled.routes)) {
    // There might not be a workspace for this tenant, since subscriptions and ingress keys can name any workspace.
    tenant.stored = stored;
    return false;
  }
  const wanted = keepLost(compiled.routes, stored, remembered);
  const plan = planRoutes(stored, wanted);
  tenant.stored = await applyRoutes(deps, { name, fence, stored, plan, wanted, first });
  tenant.remembered = tenant.stored.routes;
  return true;
}

/** Applies all changes that close a route. Anything else needs to wait for the pause to end. */
async function syncPaused(deps: SyncDeps, tenant: Tenant): Promise<void> {
  const { name, remembered, closing: had } = tenant;
  // Once the pause is over, the routes and activations are read from Redis again in order to check everything.
  tenant.stored = undefined;
  tenant.failed = true;
  tenant.closing = undefined;
  try {
    const fence = deps.fence();
    // The tenant must be listed. Otherwise, after Redis has lost its data, this tenant would look like a tenant that
    // never existed.
    await deps.control.enlist(fence, tenantId(name));
    const seen = versionsOf(deps, name);
    const known = remembered === undefined ? [] : [remembered];
    const stored = had?.stored ?? (await deps.control.readTenant(tenantId(name), fence, known));
    const closing = await applyClosing(deps, { name, fence, stored, fresh: had === undefined, seen });
    tenant.closing = closing;
    deps.onChanged(name, changedByClosing(had, closing));
  } catch (error) {
    throw deps.explain(error);
  }
}

/** Marks the tenant's routes as possibly not applied and returns the error to show in statuses. */
function markFailed(deps: SyncDeps, tenant: Tenant, error: unknown): unknown {
  const { failed } = tenant;
  tenant.failed = true;
  if (!failed) deps.onChanged(tenant.name, 'all');
  return deps.explain(error);
}

function versionsOf({ objectsOf }: SyncDeps, name: string): ReadonlySet<string> {
  const versions = new Set<string>();
  for (const object of objectsOf(name)) versions.add(versionOf(object));
  return versions;
}
