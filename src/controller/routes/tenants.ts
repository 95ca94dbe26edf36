import { type CompiledTenant, type CompileOptions, compileSteps } from '../../core/routing/compile-routes.ts';
import { createRoutesMade } from '../../core/routing/routes-made.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import type { Steps } from '../../core/routing/steps.ts';
import { cacheBehind } from '../../kube/kube-error.ts';
import type { AnyObject } from '../../kube/object.ts';
import { planSteps, type StoredRoutes } from '../../record/control-plan.ts';
import { type Clock, systemClock } from '../../time/clock.ts';
import { inSlices } from '../../time/slices.ts';
import type { InForce } from './closing.ts';
import { type Drop, type Leaves, removeData } from './removal.ts';
import { closeTenant, type SyncDeps, syncTenant } from './sync.ts';
import { createTenant, forgetStored, isEmpty, isKnown, type Tenant } from './tenant.ts';
import { versionOf } from './versions.ts';

export interface TenantsDeps extends Omit<SyncDeps, 'gather' | 'compile'> {
  readonly gather: (name: string, isRemoved: (uid: string) => boolean) => Steps<TenantSnapshot>;
  readonly compile: Omit<CompileOptions, 'nowMs' | 'made'>;
  /** Used for the rests between the runs of a tenant. Defaults to the system clock. */
  readonly clock?: Pick<Clock, 'nowMs' | 'setTimer'>;
}

/**
 * Applies the routes of all tenants. There is at most one run per tenant at a time. Changes made during a run are
 * processed by the next run.
 */
export function createTenants(deps: TenantsDeps) {
  const tenants = new Map<string, Tenant>();
  const removed = new Set<string>();
  const isRemoved = (uid: string): boolean => removed.has(uid);
  const gather = (name: string): Steps<TenantSnapshot> => deps.gather(name, isRemoved);
  const syncDeps: SyncDeps = { ...deps, gather, compile: createCompile(gather, deps.compile) };

  function of(name: string): Tenant {
    let tenant = tenants.get(name);
    if (tenant === undefined) tenants.set(name, (tenant = createTenant(name, deps.clock ?? systemClock)));
    return tenant;
  }

  const run = (tenant: Tenant): Promise<void> => tenant.runs.join(() => syncTenant(syncDeps, tenant));
  const between = (name: string, drop: Drop, leaves?: Leaves): Promise<void> =>
    removeData(deps, of(name), drop, leaves);

  return {
    /** Applies the tenant routes. The objects are not read before this call. */
    sync: (name: string): Promise<void> => run(of(name)),
    /** Waits until the routes for this version of the object have been applied. */
    inForce: (name: string, object: AnyObject): Promise<CompiledTenant> => awaitApplied(of(name), object, run),
    /** Waits until the closing changes of this version have been applied, in a pause or if nothing can be compiled. */
    closedBy: (name: string, object: AnyObject): Promise<InForce> =>
      awaitClosed(of(name), object, deps.isPaused(name) ? run : tenant => closeOnce(syncDeps, tenant, object)),
    /** If the workspace is paused, this returns how the Subscription with this UID was closed. */
    closureOf: (name: string, uid: string) => tenants.get(name)?.closing?.closed.get(uid),
    /** Returns true if this leader has closed routes of the paused tenant. If so, Redis will accept its writes. */
    isClosing: (name: string) => tenants.get(name)?.closing !== undefined,
    between,
    /** Removes the data of an object from Redis. Works in the same way as `between`. */
    async remove(name: string, uid: string, drop: Drop, leaves?: Leaves): Promise<void> {
      await between(name, drop, leaves);
      removed.add(uid);
    },
    /** Returns true if `remove` has been called for the object, so that it is not added to the routes again. */
    isRemoved,
    names: (): string[] => [...tenants.keys()],
    compiled: (name: string) => tenants.get(name)?.compiled,
    isSynced: (name: string) => isKnown(of(name)),
    /** Returns the routes in Redis. Undefined if the routes are unknown. Each sync creates a new object. */
    stored: (name: string): StoredRoutes | undefined => {
      const tenant = tenants.get(name);
      return tenant === undefined || tenant.runs.isRunning() || tenant.failed ? undefined : tenant.stored;
    },
    /**
     * Returns true if the routes in Redis are the same as in the objects. Resolves to false if the routes have been
     * applied again in the meantime.
     */
    isCurrent: async (name: string): Promise<boolean> => {
      const stored = tenants.get(name)?.stored;
      const same = stored !== undefined && (await isCurrent(stored, syncDeps.compile(name, deps.nowMs())));
      return same && tenants.get(name)?.stored === stored;
    },
    /**
     * Drops the UIDs of all objects which no longer exist. Also drops tenants without any objects, whose only data in
     * Redis is their fence. Returns the names of these tenants.
     */
    prune(exists: (uid: string) => boolean): string[] {
      for (const uid of removed) if (!exists(uid)) removed.delete(uid);
      const gone = [...tenants.values()].filter(tenant => hasNothing(tenant, deps.objectsOf));
      for (const { name } of gone) tenants.delete(name);
      return gone.map(({ name }) => name);
    },
    /** Marks the routes in Redis as unknown. */
    forget(names: Iterable<string> | 'all'): void {
      for (const name of names === 'all' ? [...tenants.keys()] : names) forgetStored(of(name));
    },
    /** Marks all routes as possibly not applied and then updates the statuses. */
    doubt(): void {
      for (const [name, tenant] of tenants) {
        forgetStored(tenant);
        tenant.failed = true;
        deps.onChanged(name, 'all');
      }
    },
  };
}

export type Tenants = ReturnType<typeof createTenants>;

type Run = (tenant: Tenant) => Promise<void>;

async function awaitApplied(tenant: Tenant, object: AnyObject, run: Run): Promise<CompiledTenant> {
  const version = versionOf(object);
  if (tenant.failed || !isKnown(tenant) || !tenant.seen.has(version)) await run(tenant);
  if (tenant.compiled === undefined || !tenant.seen.has(version)) throw cacheBehind(`routes of ${tenant.name}`);
  return tenant.compiled;
}

async function awaitClosed(tenant: Tenant, object: AnyObject, run: Run): Promise<InForce> {
  if (!isClosedBy(tenant, object)) await run(tenant);
  const { closing } = tenant;
  if (closing === undefined || !isClosedBy(tenant, object)) throw cacheBehind(`what closes of ${tenant.name}`);
  return { routes: closing.stored.routes, paused: closing.paused };
}

function isClosedBy({ closing }: Tenant, object: AnyObject): boolean {
  return closing?.seen.has(versionOf(object)) === true;
}

/** Applies the closing changes, unless an earlier call has included this version of the object. */
function closeOnce(deps: SyncDeps, tenant: Tenant, object: AnyObject): Promise<void> {
  return tenant.runs.alone(async () => {
    if (!isClosedBy(tenant, object)) await closeTenant(deps, tenant);
  });
}

/** Creates a function that compiles the snapshot at the time of the call. */
function createCompile(gather: SyncDeps['gather'], options: TenantsDeps['compile']): SyncDeps['compile'] {
  const made = createRoutesMade();
  return (name, nowMs) => {
    const gathering = gather(name);
    return (function* () {
      return yield* compileSteps(yield* gathering, { ...options, made, nowMs });
    })();
  };
}

async function isCurrent(stored: StoredRoutes, compiling: Steps<CompiledTenant>): Promise<boolean> {
  const { routes } = await inSlices(compiling);
  if (isEmpty(stored.routes) && isEmpty(routes)) return true;
  const { patches, ready } = await inSlices(planSteps(stored, routes));
  return patches.length + ready.length === 0;
}

/** Returns true if this tenant has no objects, and no data in Redis. */
function hasNothing({ name, runs, stored }: Tenant, objectsOf: TenantsDeps['objectsOf']): boolean {
  if (runs.isRunning() || stored === undefined || !isEmpty(stored.routes)) return false;
  return objectsOf(name)[Symbol.iterator]().next().done === true;
}
