import { tenantId } from '../../core/ids/ids.ts';
import type { ListedPart, StateAudit } from '../../record/control-audit.ts';
import type { Caches } from '../caches/caches.ts';
import type { Tenants } from '../routes/tenants.ts';
import { createOrphanParts } from './orphan-parts.ts';
import { createOrphanTenants, type OrphanTenantsDeps } from './orphan-tenants.ts';

export interface GarbageCollectorDeps extends OrphanTenantsDeps {
  readonly tenants: Pick<Tenants, 'names' | 'between' | 'prune' | 'forget'>;
  readonly store: Pick<StateAudit, 'readIndexes' | 'readRoutes' | 'probe' | 'parts'>;
  /** Lists every object that may own data in Redis, using a quorum read. */
  readonly relist: (what: 'routes') => Promise<void>;
}

/**
 * Removes orphaned data from Redis. Data is orphaned if its object was deleted without a cleanup, which happens if the
 * finalizer was removed during an outage, or if the object never had a finalizer. Queues with undelivered events and
 * inboxes within their retention period are not removed. For safety, an orphan is only removed if it was found in two
 * passes, and if the caches match the quorum.
 */
export function createGarbageCollector(deps: GarbageCollectorDeps) {
  const { caches, tenants, store, purger } = deps;
  const orphanTenants = createOrphanTenants(deps);
  const orphanParts = createOrphanParts({ ...deps, parts: store.parts });

  /** Returns true if this part's stream has, or may have, an object. */
  function hasObject({ tenant, queue }: ListedPart, names: ReadonlyMap<string, string>): boolean {
    const name = names.get(tenant);
    if (name === undefined) return false;
    return deps.isPaused(name) || caches.CatalogStream.store.get(`${name}/${queue}`) !== undefined;
  }

  async function collectPart(part: ListedPart, name: string | undefined): Promise<void> {
    if (name === undefined) return orphanParts.remove(part, deps.fence());
    await tenants.between(name, fence => orphanParts.remove(part, fence));
    deps.enqueueTenant(name);
  }

  /** Applies tenants again whose workspace was created while they were closed. */
  function reopen(unnamed: readonly string[]): void {
    if (unnamed.length === 0) return;
    const names = namesById(deps);
    for (const name of unnamed.flatMap(tenant => names.get(tenant) ?? [])) {
      tenants.forget([name]);
      deps.enqueueTenant(name);
    }
  }

  return {
    /** Discards the results of the previous pass. Called when a term starts. */
    forget: (): void => {
      orphanTenants.forget();
      orphanParts.forget();
    },
    /** Runs a single pass for all tenants that have control state in Redis. */
    async pass(listed: ReadonlySet<string>): Promise<void> {
      const uids = knownUids(caches);
      for (const name of tenants.prune(uid => uids.has(uid))) {
        // Since a Subscription can specify any producer, this tenant might not exist.
        if (!listed.has(tenantId(name))) await purger.purgeTenant(deps.fence(), tenantId(name), deps.nowMs(), false);
      }
      const indexes = await store.readIndexes([...listed]);
      const known = namesById(deps);
      const attempts = createAttempts();
      const suspects = await orphanTenants.find(indexes, known);
      const again = await attempts.each(suspects, tenant => orphanTenants.isDue(tenant, known));
      const found = await orphanParts.find(part => {
        return hasObject(part, known) || indexes.get(part.tenant)?.[`q:${part.queue}`] !== undefined;
      });
      const parts = await attempts.each(found, part => orphanParts.isDue(part, deps.fence()));
      // Listing all objects is expensive, so this is only done if there is something to do.
      if (again.length + parts.length > 0) {
        await deps.relist('routes');
        const names = namesById(deps);
        await attempts.each(again, tenant => orphanTenants.collect(tenant, names));
        reopen(again.filter(tenant => !names.has(tenant)));
        await attempts.each(parts, async part => {
          if (!hasObject(part, names)) await collectPart(part, names.get(part.tenant));
        });
      }
      attempts.end();
    },
  };
}

export type GarbageCollector = ReturnType<typeof createGarbageCollector>;

/**
 * Calls a function for all items, one after the other. If it fails for one of them, the others are not affected, and
 * `end` throws the first error.
 */
function createAttempts() {
  const errors: unknown[] = [];
  return {
    /** Returns the items for which `run` returned true. */
    async each<T>(items: readonly T[], run: (item: T) => Promise<boolean | void>): Promise<T[]> {
      const chosen: T[] = [];
      for (const item of items) {
        try {
          if (await run(item)) chosen.push(item);
        } catch (error) {
          errors.push(error);
        }
      }
      return chosen;
    },
    end(): void {
      if (errors.length > 0) throw errors[0];
    },
  };
}

/**
 * Returns the workspace names by their id (`ten_…`). Includes all workspaces which exist, contain objects, or are
 * referenced by an object.
 */
function namesById({ caches, tenants }: Pick<GarbageCollectorDeps, 'caches' | 'tenants'>): Map<string, string> {
  const names = new Set(tenants.names());
  for (const { metadata } of caches.Workspace.store.values()) names.add(metadata.name);
  for (const kind of ['CatalogStream', 'Integration'] as const) {
    for (const { metadata } of caches[kind].store.values()) names.add(metadata.namespace ?? '');
  }
  for (const { spec } of caches.Subscription.store.values()) names.add(spec.producer);
  return new Map([...names].map(name => [tenantId(name), name]));
}

/** Returns the UIDs of all objects which may still need to be reconciled. */
function knownUids(caches: Pick<Caches, 'CatalogStream' | 'Subscription'>): Set<string> {
  const uids = new Set<string>();
  for (const kind of ['CatalogStream', 'Subscription'] as const) {
    for (const { metadata } of caches[kind].store.values()) uids.add(metadata.uid);
  }
  return uids;
}
