import { tenantId } from '../../core/ids/ids.ts';
import { type CompiledTenant, type CompileOptions, compileRoutes } from '../../core/routing/compile-routes.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import { createRoutesMade } from '../../core/routing/routes-made.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import { cacheBehind } from '../../kube/kube-error.ts';
import type { AnyObject } from '../../kube/object.ts';
import { planRoutes, type StoredRoutes } from '../../redis/control-plan.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import { type ApplyDeps, applyRoutes } from './apply.ts';
import { applyClosing, type Closing, changedByClosing, type InForce } from './closing.ts';

export interface TenantsDeps extends ApplyDeps {
  readonly control: ControlStore;
  /** Reads what `gather` needs and the caches do not hold. Never rejects: `gather` reports what could not be read. */
  readonly prepare: (name: string) => Promise<void>;
  readonly gather: (name: string, isRemoved: (uid: string) => boolean) => TenantSnapshot;
  /** Nothing of it is written but what closes, whatever asks for it. */
  readonly isPaused: (name: string) => boolean;
  /** Every object of the snapshot of a tenant. */
  readonly objectsOf: (name: string) => Iterable<AnyObject>;
  readonly compile: Omit<CompileOptions, 'nowMs' | 'made'>;
  /** This leader's fencing epoch; throws while nothing may be written. */
  readonly fence: () => number;
  /** Returns the error that statuses show for a failure of Redis. */
  readonly explain: (error: unknown) => unknown;
  /** Called after the routes of a tenant changed or could not be applied: statuses may change. */
  readonly onChanged: (name: string, uids: ReadonlySet<string> | 'all') => void;
}

interface Tenant {
  running: Promise<void> | undefined;
  following: Promise<void> | undefined;
  /** The routes in Redis as this leader wrote them; undefined: read them again. */
  stored: StoredRoutes | undefined;
  /** The last known routes in Redis: their names are read even if Redis has lost the index. */
  remembered: TenantRoutes | undefined;
  compiled: CompiledTenant | undefined;
  /** uid@generation of all objects in the compiled routes. */
  seen: Set<string>;
  /** What was closed during the pause; undefined if the workspace is not paused, or before it was read. */
  closing: Closing | undefined;
  /** The last run failed: the routes may not be applied. */
  troubled: boolean;
}

function stampOf({ uid, generation, deletionTimestamp, finalizers }: AnyObject['metadata']): string {
  return `${uid}@${generation ?? 0}${deletionTimestamp === undefined ? '' : '-'}${finalizers?.length ?? 0}`;
}

/**
 * Applies the routes of all tenants. Compiles each tenant as a whole from its objects, and writes the difference to
 * Redis. A tenant has one run at a time; changes during it are in the next one.
 */
export function createTenants(deps: TenantsDeps) {
  const tenants = new Map<string, Tenant>();
  const removed = new Set<string>();
  const made = createRoutesMade();

  function of(name: string): Tenant {
    let tenant = tenants.get(name);
    if (tenant === undefined) {
      tenant = {
        running: undefined,
        following: undefined,
        stored: undefined,
        remembered: undefined,
        compiled: undefined,
        seen: new Set(),
        closing: undefined,
        troubled: false,
      };
      tenants.set(name, tenant);
    }
    return tenant;
  }

  const gather = (name: string) => deps.gather(name, uid => removed.has(uid));

  const compile = (name: string, nowMs: number): CompiledTenant =>
    compileRoutes(gather(name), { ...deps.compile, made, nowMs });

  /** Marks the tenant as perhaps not applied. Returns the error that statuses show. */
  function markTroubled(name: string, tenant: Tenant, error: unknown): unknown {
    const { troubled } = tenant;
    tenant.troubled = true;
    if (!troubled) deps.onChanged(name, 'all');
    return deps.explain(error);
  }

  function stampsOf(name: string): Set<string> {
    const seen = new Set<string>();
    for (const { metadata } of deps.objectsOf(name)) seen.add(stampOf(metadata));
    return seen;
  }

  /** Applies what the objects close, and leaves everything else. */
  async function runPaused(name: string, tenant: Tenant): Promise<void> {
    // After the pause, read Redis again, with the activations, and check everything.
    tenant.stored = undefined;
    tenant.troubled = true;
    const had = tenant.closing;
    tenant.closing = undefined;
    try {
      const fence = deps.fence();
      // Without its name in the list, a tenant that Redis has lost looks like one that never existed.
      await deps.control.enlist(fence, tenantId(name));
      const seen = stampsOf(name);
      const known = tenant.remembered === undefined ? [] : [tenant.remembered];
      const stored = had?.stored ?? (await deps.control.readTenant(tenantId(name), fence, known));
      const closing = await applyClosing({ ...deps, gather }, { name, fence, stored, fresh: had === undefined, seen });
      tenant.closing = closing;
      deps.onChanged(name, changedByClosing(had, closing));
    } catch (error) {
      throw deps.explain(error);
    }
  }

  async function run(name: string, tenant: Tenant): Promise<void> {
    if (deps.isPaused(name)) return runPaused(name, tenant);
    tenant.closing = undefined;
    try {
      // Compile nothing while nothing may be written.
      deps.fence();
    } catch (error) {
      throw markTroubled(name, tenant, error);
    }
    await deps.prepare(name);
    const nowMs = deps.nowMs();
    const seen = stampsOf(name);
    const compiled = compile(name, nowMs);
    const { compiled: had, troubled } = tenant;
    try {
      const fence = deps.fence();
      // A tenant that had nothing until now counts as never read.
      const first = tenant.stored === undefined || isNothing(tenant.stored.routes);
      const stored =
        tenant.stored ?? (await deps.control.readTenant(tenantId(name), fence, namesKnown(tenant, compiled)));
      // Until everything is written, the routes in Redis are not known.
      tenant.stored = undefined;
      if (isNothing(stored.routes) && isNothing(compiled.routes)) {
        // No workspace: a subscription or an ingress key may name anything.
        tenant.stored = stored;
        tenant.compiled = compiled;
        tenant.seen = seen;
        return;
      }
      const plan = planRoutes(stored, compiled.routes, nowMs);
      tenant.stored = await applyRoutes(deps, { name, fence, stored, plan, wanted: compiled.routes, first });
      tenant.remembered = tenant.stored.routes;
    } catch (error) {
      throw markTroubled(name, tenant, error);
    }
    tenant.troubled = false;
    tenant.compiled = compiled;
    tenant.seen = seen;
    deps.onChanged(name, troubled || had === undefined ? 'all' : changedObjects(had, compiled));
  }

  /** Applies the tenant's routes, from the objects at the time of the call or later. */
  function sync(name: string): Promise<void> {
    const tenant = of(name);
    if (tenant.running === undefined) {
      tenant.running = run(name, tenant).finally(() => {
        tenant.running = undefined;
      });
      return tenant.running;
    }
    tenant.following ??= tenant.running
      .catch(() => {})
      .then(() => {
        tenant.following = undefined;
        return sync(name);
      });
    return tenant.following;
  }

  /**
   * Runs `drop`, which removes data of the tenant from Redis, between two syncs.
   *
   * @param leaves returns the routes after `drop`; if absent, or if `drop` fails, the next sync reads them
   */
  async function between(
    name: string,
    drop: (fence: number) => Promise<void>,
    leaves?: (routes: TenantRoutes) => TenantRoutes,
  ): Promise<void> {
    const tenant = of(name);
    while (tenant.running !== undefined) await tenant.running.catch(() => {});
    const { stored } = tenant;
    let left: StoredRoutes | undefined;
    tenant.running = drop(deps.fence())
      .then(
        () => {
          // Forgotten meanwhile: the remaining routes are not known either.
          if (stored === undefined || tenant.stored !== stored || leaves === undefined) return;
          left = { ready: stored.ready, routes: leaves(stored.routes) };
        },
        error => {
          throw deps.explain(error);
        },
      )
      .finally(() => {
        tenant.running = undefined;
        tenant.closing = undefined;
        tenant.stored = left;
        tenant.remembered = left?.routes;
      });
    await tenant.running;
  }

  return {
    sync,
    /** Waits until the routes of this version of the object are applied. */
    async inForce(name: string, object: AnyObject): Promise<CompiledTenant> {
      const tenant = of(name);
      const wanted = stampOf(object.metadata);
      if (tenant.troubled || tenant.stored === undefined || !tenant.seen.has(wanted)) await sync(name);
      if (tenant.compiled === undefined || !tenant.seen.has(wanted)) throw cacheBehind(`routes of ${name}`);
      return tenant.compiled;
    },
    /** Waits until what this version of the object closes is applied, in a paused workspace. */
    async closedBy(name: string, object: AnyObject): Promise<InForce> {
      const tenant = of(name);
      const wanted = stampOf(object.metadata);
      if (tenant.closing?.seen.has(wanted) !== true) await sync(name);
      const { closing } = tenant;
      if (closing?.seen.has(wanted) !== true) throw cacheBehind(`what closes of ${name}`);
      return { routes: closing.stored.routes, paused: closing.paused };
    },
    /** Returns how the Subscription with this UID was closed while its workspace is paused. */
    closureOf: (name: string, uid: string) => tenants.get(name)?.closing?.closed.get(uid),
    /** Returns whether this leader has closed routes of the paused tenant, so that Redis accepts its writes. */
    isClosing: (name: string) => tenants.get(name)?.closing !== undefined,
    /** Removes the object's data from Redis, as `between` does. */
    async remove(
      name: string,
      uid: string,
      drop: (fence: number) => Promise<void>,
      leaves?: (routes: TenantRoutes) => TenantRoutes,
    ): Promise<void> {
      await between(name, drop, leaves);
      removed.add(uid);
    },
    between,
    /** Returns whether `remove` was called for the object: it must not come back into the routes. */
    isRemoved: (uid: string) => removed.has(uid),
    names: (): string[] => [...tenants.keys()],
    isSynced: (name: string) => of(name).stored !== undefined,
    /** Returns the routes that were written to Redis; undefined while not known. A new object after each sync. */
    stored: (name: string): StoredRoutes | undefined => {
      const tenant = tenants.get(name);
      return tenant === undefined || tenant.running !== undefined || tenant.troubled ? undefined : tenant.stored;
    },
    /** Returns whether the written routes match the objects. */
    isCurrent(name: string): boolean {
      const stored = tenants.get(name)?.stored;
      if (stored === undefined) return false;
      const nowMs = deps.nowMs();
      const { routes } = compile(name, nowMs);
      if (isNothing(stored.routes) && isNothing(routes)) return true;
      const { patches, ready } = planRoutes(stored, routes, nowMs);
      return patches.length + ready.length === 0;
    },
    /**
     * Forgets UIDs of removed objects, and tenants without objects and without data in Redis except the fence that
     * reading them raised. Returns the names of these tenants.
     */
    prune(exists: (uid: string) => boolean): string[] {
      for (const uid of removed) if (!exists(uid)) removed.delete(uid);
      const pruned: string[] = [];
      for (const [name, { stored, running }] of tenants) {
        if (running !== undefined || stored === undefined || !isNothing(stored.routes)) continue;
        if (deps.objectsOf(name)[Symbol.iterator]().next().done && tenants.delete(name)) pruned.push(name);
      }
      return pruned;
    },
    compiled: (name: string) => tenants.get(name)?.compiled,
    /** Marks the routes in Redis as not known any more. */
    forget(names: Iterable<string> | 'all'): void {
      for (const name of names === 'all' ? [...tenants.keys()] : names) {
        const tenant = of(name);
        tenant.stored = undefined;
        tenant.closing = undefined;
      }
    },
    /** Marks all routes as perhaps not applied; statuses change. */
    doubt(): void {
      for (const [name, tenant] of tenants) {
        tenant.stored = undefined;
        tenant.closing = undefined;
        tenant.troubled = true;
        deps.onChanged(name, 'all');
      }
    },
  };
}

export type Tenants = ReturnType<typeof createTenants>;

function namesKnown({ remembered }: Tenant, { routes }: CompiledTenant): TenantRoutes[] {
  return remembered === undefined ? [routes] : [routes, remembered];
}

/** Returns whether the routes are empty. */
export function isNothing({ payer, queues, integrations }: TenantRoutes): boolean {
  return payer === '' && Object.keys(queues).length === 0 && Object.keys(integrations).length === 0;
}

/** Returns UIDs of the Subscriptions and Blocks for which the routes have changed. */
function changedObjects(had: CompiledTenant, has: CompiledTenant): Set<string> {
  const changed = new Set<string>();
  for (const [uid, verdict] of has.verdicts) {
    const before = had.verdicts.get(uid);
    const same = (['ready', 'live', 'detail', 'about'] as const).every(part => before?.[part] === verdict[part]);
    if (!same) changed.add(uid);
  }
  for (const uid of new Set([...had.paused.keys(), ...has.paused.keys()])) {
    if (had.paused.get(uid) !== has.paused.get(uid)) changed.add(uid);
  }
  return changed;
}
