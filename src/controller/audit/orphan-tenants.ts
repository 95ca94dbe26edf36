import type { StateAudit } from '../../record/control-audit.ts';
import type { ControlStore } from '../../record/control-store.ts';
import { inSlices } from '../../time/slices.ts';
import type { Caches } from '../caches/caches.ts';
import type { Tenants } from '../routes/tenants.ts';
import { type OrphanRemovalDeps, removeOrphans, type Suspect } from './orphan-removal.ts';
import { emptyRoutes, findOrphans, namesOf, OWNS_NOTHING, ownedBy } from './orphans.ts';
import { takeTurn } from './turn.ts';
import { closeUnnamedTenant } from './unnamed-tenant.ts';

export interface OrphanTenantsDeps extends OrphanRemovalDeps {
  readonly caches: Pick<Caches, 'Workspace' | 'CatalogStream' | 'Integration' | 'Subscription'>;
  readonly tenants: Pick<Tenants, 'between'>;
  readonly store: Pick<StateAudit, 'readRoutes' | 'probe'>;
  readonly control: Pick<ControlStore, 'patch' | 'readTenant' | 'applyParts'>;
  readonly isPaused: (tenant: string) => boolean;
  readonly fence: () => number;
  readonly enqueueTenant: (name: string) => void;
}

type Indexes = Awaited<ReturnType<StateAudit['readIndexes']>>;
/** The workspace names, by id (`ten_…`). */
type Names = ReadonlyMap<string, string>;

/** The maximum number of tenants processed in a single pass. */
const MOST_TENANTS = 50;

/** Finds and removes the orphans of tenants. An orphan is only removed after it was found in two passes. */
export function createOrphanTenants(deps: OrphanTenantsDeps) {
  const { caches, tenants } = deps;
  /** The orphans that were found in the previous pass, by tenant. */
  let seen = new Map<string, ReadonlySet<string>>();
  /** Tenants without a name that this leader has closed. */
  const closed = new Set<string>();
  let turn = 0;

  async function suspectOf(tenant: string, names: Names): Promise<Suspect> {
    const name = names.get(tenant);
    return { tenant, name, owned: name === undefined ? OWNS_NOTHING : await inSlices(ownedBy(caches, name)) };
  }

  return {
    forget(): void {
      seen = new Map();
      closed.clear();
    },
    /** Returns tenants with at least one orphan that was already found by the previous call. */
    async find(indexes: Indexes, names: Names): Promise<string[]> {
      const before = seen;
      const found = new Map<string, ReadonlySet<string>>();
      const again: string[] = [];
      for (const [tenant, index] of indexes) {
        const name = names.get(tenant);
        if (name !== undefined && deps.isPaused(name)) continue;
        const { owned } = await suspectOf(tenant, names);
        const left = namesOf(await inSlices(findOrphans(index, emptyRoutes(tenant), owned)));
        if (left.length === 0) continue;
        found.set(tenant, new Set(left));
        if (left.some(each => before.get(tenant)?.has(each))) again.push(tenant);
      }
      // A new term may have started in the meantime.
      if (seen === before) seen = found;
      for (const tenant of closed) if (!found.has(tenant)) closed.delete(tenant);
      return takeTurn(again, MOST_TENANTS, turn++);
    },
    /**
     * Returns whether a tenant has to be closed, or has an orphan that can be removed. A queue with undelivered events
     * can be an orphan for weeks.
     */
    async isDue(tenant: string, names: Names): Promise<boolean> {
      const suspect = await suspectOf(tenant, names);
      if (suspect.name !== undefined) closed.delete(tenant);
      else if (!closed.has(tenant)) return true;
      return (await removeOrphans(deps, suspect, deps.fence(), true)) > 0;
    },
    async collect(tenant: string, names: Names): Promise<void> {
      const name = names.get(tenant);
      if (name === undefined) {
        await closeUnnamedTenant(deps, tenant, deps.fence());
        closed.add(tenant);
      }
      const suspect = await suspectOf(tenant, names);
      if ((await removeOrphans(deps, suspect, deps.fence(), true)) === 0) return;
      if (name === undefined) {
        await removeOrphans(deps, suspect, deps.fence(), false);
        return;
      }
      await tenants.between(name, async fence => {
        // In the meantime, new objects may have been added to the index. From now on, it does not change.
        await removeOrphans(deps, await suspectOf(tenant, names), fence, false);
      });
      deps.enqueueTenant(name);
    },
  };
}
