import { tenantId } from '../../core/ids/ids.ts';
import type { CompiledTenant } from '../../core/routing/compile-routes.ts';
import type { Steps } from '../../core/routing/steps.ts';
import { planSteps, type StoredRoutes } from '../../record/control-plan.ts';
import { keepUnowned } from '../../record/unowned-routes.ts';
import { inSlices } from '../../time/slices.ts';
import { SecretsUnreadableError } from '../engine/outcome.ts';
import { applyRoutes } from './apply.ts';
import { applyClosing, type ClosingDeps, changedByClosing } from './closing.ts';
import { keepLost } from './lost-routes.ts';
import { changedObjects, isEmpty, type Tenant } from './tenant.ts';
import { withVersions } from './versions.ts';

/**
 * The minimum time between two closings while the Secrets cannot be read. All objects of the tenant retry in this state,
 * and a closing compares all of them.
 */
const CLOSE_EVERY_MS = 5_000;

export interface SyncDeps extends ClosingDeps {
  /**
   * Reads the data required by `gather` that is not in the caches. Rejects if the routes can't be compiled yet. In this
   * case, the routes in Redis do not change. If other data can't be read, `gather` reports it.
   */
  readonly prepare: (name: string) => Promise<void>;
  /** Compiles the snapshot at the time of this call. */
  readonly compile: (name: string, nowMs: number) => Steps<CompiledTenant>;
  /** Returns true if the workspace is paused. In this case, we are only allowed to write changes that close a route. */
  readonly isPaused: (name: string) => boolean;
  /** Returns this leader's fencing epoch. Throws an error if it is not allowed to write. */
  readonly fence: () => number;
  /** Returns the error for statuses if Redis has failed. */
  readonly explain: (error: unknown) => unknown;
  /** Called if the tenant routes have changed or could not be applied, because statuses may need to be updated. */
  readonly onChanged: (name: string, uids: ReadonlySet<string> | 'all') => void;
}

/**
 * Compiles the routes from all objects of a tenant and writes the changes to Redis. All of them are taken from the
 * caches at the same time. The calculations run in slices, because a tenant may have tens of thousands of objects.
 */
export async function syncTenant(deps: SyncDeps, tenant: Tenant): Promise<void> {
  const { name } = tenant;
  const isPaused = () => deps.isPaused(name);
  if (isPaused()) return closeTenant(deps, tenant);
  let fence: number;
  try {
    // Only compile the routes if writes are allowed.
    fence = deps.fence();
  } catch (error) {
    throw markFailed(deps, tenant, error);
  }
  try {
    await deps.prepare(name);
  } catch (error) {
    // All other changes wait, also in the statuses. Changes that close a route must not wait until somebody grants
    // access.
    if (error instanceof SecretsUnreadableError && !isJustClosed(deps, tenant)) await closeTenant(deps, tenant);
    throw error;
  }
  if (isPaused()) return closeTenant(deps, tenant);
  tenant.closing = undefined;
  const { seen, result: compiled } = await withVersions(deps.objectsOf(name), deps.compile(name, deps.nowMs()));
  const { compiled: had, failed, forgotten } = tenant;
  let written: Awaited<ReturnType<typeof write>>;
  try {
    written = await write(deps, tenant, compiled, fence);
  } catch (error) {
    throw markFailed(deps, tenant, error);
  }
  if (written === 'paused') return closeTenant(deps, tenant);
  tenant.compiled = compiled;
  tenant.seen = seen;
  if (written === 'nothing') return;
  if (tenant.forgotten === forgotten) tenant.failed = false;
  deps.onChanged(name, failed || had === undefined ? 'all' : await inSlices(changedObjects(had, compiled)));
}

/**
 * Writes the routes. Returns `nothing` if the tenant has no routes, neither in Redis nor in its objects, and `paused`
 * if its workspace was paused before the first write.
 *
 * @param fence the epoch of the term in which the objects were read. A later term of this replica must not write them
 * because another leader may have written newer routes in between
 */
async function write(
  deps: SyncDeps,
  tenant: Tenant,
  compiled: CompiledTenant,
  fence: number,
): Promise<'written' | 'nothing' | 'paused'> {
  const { name, remembered, forgotten } = tenant;
  // Writes may no longer be allowed.
  deps.fence();
  const keep = (now: StoredRoutes) => {
    if (tenant.forgotten === forgotten) tenant.stored = now;
  };
  // A tenant without any previous routes is treated as if we hadn't read it yet.
  const first = tenant.stored === undefined || isEmpty(tenant.stored.routes);
  const known = remembered === undefined ? [compiled.routes] : [compiled.routes, remembered];
  const stored = tenant.stored ?? (await deps.control.readTenant(tenantId(name), fence, known));
  if (isEmpty(stored.routes) && isEmpty(compiled.routes)) {
    // There might not be a workspace for this tenant, since subscriptions and ingress keys can name any workspace.
    keep(stored);
    return 'nothing';
  }
  const wanted = keepLost(compiled.routes, stored, remembered);
  const plan = await inSlices(planSteps(stored, wanted));
  if (deps.isPaused(name)) return 'paused';
  const isWritten = !first && stored.hashes === undefined && plan.patches.length + plan.ready.length === 0;
  const apply = () => applyRoutes(deps, { name, fence, stored, plan, wanted, first });
  const applied = isWritten
    ? { routes: keepUnowned(stored.routes, wanted), ready: stored.ready }
    : await whileWriting(tenant, apply);
  keep(applied);
  tenant.remembered = applied.routes;
  return 'written';
}

/** Until all changes have been written, the routes in Redis are unknown, but those of other objects remain in force. */
async function whileWriting<T>(tenant: Tenant, apply: () => Promise<T>): Promise<T> {
  tenant.isWriting = tenant.stored !== undefined;
  tenant.stored = undefined;
  try {
    return await apply();
  } finally {
    tenant.isWriting = false;
  }
}

function isJustClosed({ nowMs }: SyncDeps, { closing }: Tenant): boolean {
  // The clock may have been set back.
  return closing !== undefined && Math.abs(nowMs() - closing.atMs) < CLOSE_EVERY_MS;
}

/**
 * Applies all changes that close a route. Anything else needs to wait for the pause to end, or for the Secrets that
 * `prepare` could not read.
 */
export async function closeTenant(deps: SyncDeps, tenant: Tenant): Promise<void> {
  const { name, remembered, closing: had, forgotten } = tenant;
  // Once the pause is over, the routes and activations are read from Redis again in order to check everything.
  tenant.stored = undefined;
  tenant.failed = true;
  tenant.closing = undefined;
  try {
    const fence = deps.fence();
    // List the tenant. If it is not listed, it looks like a tenant that never existed after Redis has lost its data.
    await deps.control.enlist(fence, tenantId(name));
    const known = remembered === undefined ? [] : [remembered];
    const stored = had?.stored ?? (await deps.control.readTenant(tenantId(name), fence, known));
    const closing = await applyClosing(deps, { name, fence, stored, fresh: had === undefined });
    if (tenant.forgotten === forgotten) tenant.closing = closing;
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
