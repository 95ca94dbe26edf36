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
  /** Reads what `gather` needs and the caches do not hold. Never rejects: `gather` reports what could not be read. */
  readonly prepare: (name: string) => Promise<void>;
  readonly gather: (name: string) => TenantSnapshot;
  readonly compile: (name: string, nowMs: number) => CompiledTenant;
  /** Returns whether the workspace is paused. Then only what closes is written. */
  readonly isPaused: (name: string) => boolean;
  /** Returns every object of the snapshot of a tenant. */
  readonly objectsOf: (name: string) => Iterable<AnyObject>;
  /** Returns the fencing epoch of this leader; throws while nothing may be written. */
  readonly fence: () => number;
  /** Returns the error that statuses show for a failure of Redis. */
  readonly explain: (error: unknown) => unknown;
  /** Called after the routes of a tenant changed or could not be applied: statuses may change. */
  readonly onChanged: (name: string, uids: ReadonlySet<string> | 'all') => void;
}

/** Compiles a tenant as a whole from its objects, and writes the difference to Redis. */
export async function syncTenant(deps: SyncDeps, tenant: Tenant): Promise<void> {
  const { name } = tenant;
  if (deps.isPaused(name)) return syncPaused(deps, tenant);
  tenant.closing = undefined;
  try {
    // Compile nothing while nothing may be written.
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

/** Writes the routes. Returns false for a tenant that has none, neither in Redis nor in its objects. */
async function write(deps: SyncDeps, tenant: Tenant, compiled: CompiledTenant, nowMs: number): Promise<boolean> {
  const { name, remembered } = tenant;
  const fence = deps.fence();
  // A tenant that had nothing until now counts as never read.
  const first = tenant.stored === undefined || isEmpty(tenant.stored.routes);
  const known = remembered === undefined ? [compiled.routes] : [compiled.routes, remembered];
  const stored = tenant.stored ?? (await deps.control.readTenant(tenantId(name), fence, known));
  // Until everything is written, the routes in Redis are not known.
  tenant.stored = undefined;
  if (isEmpty(stored.routes) && isEmpty(compiled.routes)) {
    // No workspace: a subscription or an ingress key may name anything.
    tenant.stored = stored;
    return false;
  }
  const plan = planRoutes(stored, compiled.routes, nowMs);
  tenant.stored = await applyRoutes(deps, { name, fence, stored, plan, wanted: compiled.routes, first });
  tenant.remembered = tenant.stored.routes;
  return true;
}

/** Applies what the objects close, and leaves everything else. */
async function syncPaused(deps: SyncDeps, tenant: Tenant): Promise<void> {
  const { name, remembered, closing: had } = tenant;
  // After the pause, read Redis again, with the activations, and check everything.
  tenant.stored = undefined;
  tenant.failed = true;
  tenant.closing = undefined;
  try {
    const fence = deps.fence();
    // Without its name in the list, a tenant that Redis has lost looks like one that never existed.
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

/** Marks the tenant as perhaps not applied. Returns the error that statuses show. */
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
