import { tenantId } from '../../core/ids/ids.ts';
import type { ListedPart, StateAudit } from '../../record/control-audit.ts';
import type { ControlStore } from '../../record/control-store.ts';
import type { Caches } from '../caches/caches.ts';
import type { Tenants } from '../routes/tenants.ts';
import { createOrphanParts } from './orphan-parts.ts';
import { type OrphanRemovalDeps, removeOrphans, type Suspect } from './orphan-removal.ts';
import { emptyRoutes, findOrphans, namesOf, OWNS_NOTHING, ownedBy } from './orphans.ts';
import { closeUnnamedTenant } from './unnamed-tenant.ts';

export interface GarbageCollectorDeps extends OrphanRemovalDeps {
  readonly caches: Pick<Caches, 'Workspace' | 'CatalogStream' | 'Integration' | 'Subscription'>;
  readonly tenants: Pick<Tenants, 'names' | 'between' | 'prune'>;
  readonly store: Pick<StateAudit, 'readIndexes' | 'readRoutes' | 'probe' | 'parts'>;
  readonly control: Pick<ControlStore, 'patch' | 'readTenant' | 'applyParts'>;
  readonly isPaused: (tenant: string) => boolean;
  readonly fence: () => number;
  /** Lists every object that may own data in Redis, using a quorum read. */
  readonly relist: (what: 'routes') => Promise<void>;
  readonly enqueueTenant: (name: string) => void;
}

type Indexes = Awaited<ReturnType<StateAudit['readIndexes']>>;

/** The maximum number of tenants processed in a single pass. */
const MOST_TENANTS = 50;

/**
 * Removes orphaned data from Redis. Data is orphaned if its object was deleted without a cleanup. This happens if the
 * finalizer was removed during an outage, or if the object never had a finalizer. Queues with undelivered events and
 * inboxes within their retention period are not removed. For safety, an orphan is only removed if it was found in two
 * passes, and if the caches match the quorum.
 */
export function createGarbageCollector(deps: GarbageCollectorDeps) {
  const { caches, tenants, store, purger } = deps;
  /** The orphans that were found in the previous pass, by tenant. */
  let seen = new Map<string, ReadonlySet<string>>();
  const orphanParts = createOrphanParts({ ...deps, parts: store.parts });

  function suspectOf(tenant: string, names: ReadonlyMap<string, string>): Suspect {
    const name = names.get(tenant);
    return { tenant, name, owned: name === undefined ? OWNS_NOTHING : ownedBy(caches, name) };
  }

  /** Returns all tenants with at least one orphan that was already found in the previous pass. */
  function findSuspects(indexes: Indexes, names: ReadonlyMap<string, string>): string[] {
    const found = new Map<string, ReadonlySet<string>>();
    const again: string[] = [];
    for (const [tenant, index] of indexes) {
      const { name, owned } = suspectOf(tenant, names);
      if (name !== undefined && deps.isPaused(name)) continue;
      const left = namesOf(findOrphans(index, emptyRoutes(tenant), owned));
      if (left.length === 0) continue;
      found.set(tenant, new Set(left));
      if (left.some(each => seen.get(tenant)?.has(each))) again.push(tenant);
    }
    seen = found;
    return again.slice(0, MOST_TENANTS);
  }

  /** Whether the stream of this part has, or may have, an object. */
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

  async function collect(suspect: Suspect): Promise<void> {
    if (suspect.name === undefined) await closeUnnamedTenant(deps, suspect.tenant, deps.fence());
    if ((await removeOrphans(deps, suspect, deps.fence(), true)) === 0) return;
    if (suspect.name === undefined) {
      await removeOrphans(deps, suspect, deps.fence(), false);
      return;
    }
    await tenants.between(suspect.name, async fence => {
      await removeOrphans(deps, suspect, fence, false);
    });
    deps.enqueueTenant(suspect.name);
  }

  return {
    /** Discards the results of the previous pass. Called when a term starts. */
    forget: (): void => {
      seen = new Map();
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
      const again = findSuspects(indexes, known);
      const parts = await orphanParts.find(part => {
        return hasObject(part, known) || indexes.get(part.tenant)?.[`q:${part.queue}`] !== undefined;
      });
      if (again.length + parts.length === 0) return;
      await deps.relist('routes');
      const names = namesById(deps);
      for (const tenant of again) await collect(suspectOf(tenant, names));
      for (const part of parts) if (!hasObject(part, names)) await collectPart(part, names.get(part.tenant));
    },
  };
}

export type GarbageCollector = ReturnType<typeof createGarbageCollector>;

/**
 * Returns the workspace names by their id (`ten_…`). This includes all workspaces which exist, contain objects, or are
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
