import { tenantId } from '../../core/ids/ids.ts';
import type { CompiledTenant } from '../../core/routing/compile-routes.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import type { AnyObject } from '../../kube/object.ts';
import { planRoutes } from '../../redis/control-plan.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import { type ApplyDeps, applyRoutes } from './apply.ts';
import { applyClosing, changedByClosing } from './closing.ts';
import { changedObjects, isEmpty, type Tenant, versionOf } from './tenant.ts';

export interface SyncDeps extends ApplyDeps {
  readonly control: ControlStore;
  /**
   * Reads data that is required by `gather` but is not in the caches. The promise is not rejected, because `gather`
   * reports the data that could not be read.
   */
  readonly prepare: (name: string) => Promise<void>;
  readonly gather: (name: string) => TenantSnapshot;
  readonly compile: (name: string, nowMs: number) => CompiledTenant;
  /** Returns true if the workspace is paused. In this case, only changes that close routes are written. */
  readonly isPaused: (name: string) => boolean;
  /** Returns all objects that are included in the snapshot of a tenant. */
  readonly objectsOf: (name: string) => Iterable<AnyObject>;
  /** Returns the fencing epoch of this leader. It throws an error if writes are not allowed. */
  readonly fence: () => number;
  /** Returns the error that is shown in statuses if Redis has failed. */
  readonly explain: (error: unknown) => unknown;
  /**
   * Called after the routes of a tenant have changed or could not be applied, because statuses may need to be updated.
   */
  readonly onChanged: (name: string, uids: ReadonlySet<string> | 'all') => void;
}

/** Compiles the routes of a tenant from all its objects, and writes the changes to Redis. */
export async function syncTenant(deps: SyncDeps, tenant: Tenant): Promise<void> {
  const { name } = tenant;
  if (deps.isPaused(name)) return syncPaused(deps, tenant);
  tenant.closing = undefined;
  try {
    // The routes are only compiled if writes are allowed.
    deps.fence();
  } catch (error) {
    throw markFailed(deps, tenant, error);
  }
  await deps.prepare(name);
  const nowMs = deps.nowMs();
  const seen = versionsOf(deps, name);
  const compiled = deps.compile(name, nowMs);
  const { compiled: had, failed } = tenant;
  let written: boolean;
  try {
    written = await write(deps, tenant, compiled, nowMs);
  } catch (error) {
    throw markFailed(deps, tenant, error);
  }
  tenant.compiled = compiled;
  tenant.seen = seen;
  if (!written) return;
  tenant.failed = false;
  deps.onChanged(name, failed || had === undefined ? 'all' : changedObjects(had, compiled));
}

/** Writes the routes. Returns false if there are no routes in Redis and in the objects of the tenant. */
async function write(deps: SyncDeps, tenant: Tenant, compiled: CompiledTenant, nowMs: number): Promise<boolean> {
  const { name, remembered } = tenant;
  const fence = deps.fence();
  // If the tenant did not have any routes before, it is handled as if it had not been read yet.
  const first = tenant.stored === undefined || isEmpty(tenant.stored.routes);
  const known = remembered === undefined ? [compiled.routes] : [compiled.routes, remembered];
  const stored = tenant.stored ?? (await deps.control.readTenant(tenantId(name), fence, known));
  // The routes in Redis are not known until all changes have been written.
  tenant.stored = undefined;
  if (isEmpty(stored.routes) && isEmpty(compiled.routes)) {
    // The tenant may not have a workspace, because subscriptions and ingress keys can name any workspace.
    tenant.stored = stored;
    return false;
  }
  const plan = planRoutes(stored, compiled.routes, nowMs);
  tenant.stored = await applyRoutes(deps, { name, fence, stored, plan, wanted: compiled.routes, first });
  tenant.remembered = tenant.stored.routes;
  return true;
}

/** Applies the changes that close routes. Other changes are not applied until the pause has ended. */
async function syncPaused(deps: SyncDeps, tenant: Tenant): Promise<void> {
  const { name, remembered, closing: had } = tenant;
  // After the pause, the routes and the activations are read from Redis again so that everything is checked.
  tenant.stored = undefined;
  tenant.failed = true;
  tenant.closing = undefined;
  try {
    const fence = deps.fence();
    // The tenant must be in the list. Otherwise, it could not be distinguished from a tenant that did not exist if
    // Redis lost its data.
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

/** Marks the routes of the tenant as possibly not applied. Returns the error that is shown in statuses. */
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
