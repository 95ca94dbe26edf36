import { type CompiledTenant, type CompileOptions, compileRoutes } from '../../core/compile-routes.ts';
import { tenantId } from '../../core/ids.ts';
import type { TenantRoutes } from '../../core/routes.ts';
import type { TenantSnapshot } from '../../core/snapshot.ts';
import { cacheBehind } from '../../kube/kube-error.ts';
import type { AnyObject } from '../../kube/object.ts';
import { planRoutes, type StoredRoutes } from '../../redis/control-plan.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import { ReconcileError } from '../runtime/outcome.ts';
import { type ApplyDeps, applyRoutes } from './apply.ts';

export interface TenantsDeps extends ApplyDeps {
  readonly control: ControlStore;
  readonly gather: (name: string) => TenantSnapshot;
  /** Every object that the snapshot of a tenant is made of. */
  readonly objectsOf: (name: string) => Iterable<AnyObject>;
  readonly compile: Omit<CompileOptions, 'nowMs'>;
  /** This leader's fencing epoch. */
  readonly fence: () => number;
  /** A failure of Redis as the objects should tell it. */
  readonly explain: (error: unknown) => unknown;
  /** Called after routes of a tenant changed, or could not be brought into force: statuses may follow. */
  readonly onChanged: (name: string, uids: ReadonlySet<string> | 'all') => void;
}

interface Tenant {
  running: Promise<void> | undefined;
  following: Promise<void> | undefined;
  /** What stands in Redis, as far as this leader wrote it; undefined: to be read. */
  stored: StoredRoutes | undefined;
  compiled: CompiledTenant | undefined;
  /** uid@generation of everything that the compiled routes were made of. */
  seen: Set<string>;
  /** The last run failed: what follows from the routes is not known to be in force. */
  troubled: boolean;
}

function stampOf({ uid, generation, deletionTimestamp, finalizers }: AnyObject['metadata']): string {
  return `${uid}@${generation ?? 0}${deletionTimestamp === undefined ? '' : '-'}${finalizers?.length ?? 0}`;
}

/**
 * The routes of all tenants: each compiled as a whole from its objects, and written as the difference to what Redis
 * holds. One run a tenant at a time; what changes meanwhile is in the next one.
 */
export function createTenants(deps: TenantsDeps) {
  const tenants = new Map<string, Tenant>();
  const removed = new Set<string>();
  let held: string | undefined;

  function of(name: string): Tenant {
    let tenant = tenants.get(name);
    if (tenant === undefined) {
      tenant = {
        running: undefined,
        following: undefined,
        stored: undefined,
        compiled: undefined,
        seen: new Set(),
        troubled: false,
      };
      tenants.set(name, tenant);
    }
    return tenant;
  }

  async function run(name: string, tenant: Tenant): Promise<void> {
    const nowMs = deps.nowMs();
    const seen = new Set<string>();
    for (const { metadata } of deps.objectsOf(name)) seen.add(stampOf(metadata));
    const compiled = compileRoutes(deps.gather(name), { ...deps.compile, nowMs });
    const { compiled: had, troubled } = tenant;
    try {
      if (held !== undefined) throw new ReconcileError('RedisUnavailable', held);
      const fence = deps.fence();
      const first = tenant.stored === undefined;
      const stored = tenant.stored ?? (await deps.control.readTenant(tenantId(name), fence));
      // Until everything is written, what stands in Redis is not known.
      tenant.stored = undefined;
      if (isNothing(stored.routes) && isNothing(compiled.routes)) {
        // No workspace: a subscription or a key may name anything.
        tenant.stored = stored;
        tenant.compiled = compiled;
        tenant.seen = seen;
        return;
      }
      const plan = planRoutes(stored, compiled.routes);
      tenant.stored = await applyRoutes(deps, { name, fence, stored, plan, wanted: compiled.routes, first });
    } catch (error) {
      tenant.troubled = true;
      if (!troubled) deps.onChanged(name, 'all');
      throw deps.explain(error);
    }
    tenant.troubled = false;
    tenant.compiled = compiled;
    tenant.seen = seen;
    deps.onChanged(name, troubled || had === undefined ? 'all' : changedVerdicts(had, compiled));
  }

  /** Brings the tenant's routes into force as its objects are when this is called, or later. */
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

  return {
    sync,
    /** Waits until the routes that were made of this version of the object are in force. */
    async inForce(name: string, object: AnyObject): Promise<CompiledTenant> {
      const tenant = of(name);
      const wanted = stampOf(object.metadata);
      if (tenant.troubled || tenant.stored === undefined || !tenant.seen.has(wanted)) await sync(name);
      if (tenant.compiled === undefined || !tenant.seen.has(wanted)) throw cacheBehind(`routes of ${name}`);
      return tenant.compiled;
    },
    /** Removes something of the tenant from Redis, between two syncs; the next one reads what is left. */
    async remove(name: string, uid: string, drop: (fence: number) => Promise<void>): Promise<void> {
      const tenant = of(name);
      while (tenant.running !== undefined) await tenant.running.catch(() => {});
      tenant.running = drop(deps.fence())
        .catch(error => {
          throw deps.explain(error);
        })
        .finally(() => {
          tenant.running = undefined;
          tenant.stored = undefined;
        });
      await tenant.running;
      removed.add(uid);
    },
    /** Whether `remove` was done for the object: it goes, and must not come back into the routes. */
    isRemoved: (uid: string) => removed.has(uid),
    names: (): string[] => [...tenants.keys()],
    isSynced: (name: string) => of(name).stored !== undefined,
    compiled: (name: string) => tenants.get(name)?.compiled,
    /** What Redis holds is not known any more. */
    forget(names: Iterable<string> | 'all'): void {
      for (const name of names === 'all' ? [...tenants.keys()] : names) of(name).stored = undefined;
    },
    /** While Redis has lost its control state, nothing is written: `why` is what the objects say meanwhile. */
    hold(why: string | undefined): void {
      held = why;
      for (const [name, tenant] of tenants) {
        tenant.stored = undefined;
        tenant.troubled = true;
        deps.onChanged(name, 'all');
      }
    },
  };
}

export type Tenants = ReturnType<typeof createTenants>;

function isNothing({ payer, queues, integrations }: TenantRoutes): boolean {
  return payer === '' && Object.keys(queues).length === 0 && Object.keys(integrations).length === 0;
}

function changedVerdicts(had: CompiledTenant, has: CompiledTenant): Set<string> {
  const changed = new Set<string>();
  for (const [uid, verdict] of has.verdicts) {
    const before = had.verdicts.get(uid);
    if (before?.ready !== verdict.ready || before.live !== verdict.live || before.detail !== verdict.detail)
      changed.add(uid);
  }
  return changed;
}
