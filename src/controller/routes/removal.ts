import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { StoredRoutes } from '../../record/control-plan.ts';
import type { SyncDeps } from './sync.ts';
import type { Tenant } from './tenant.ts';

/** Removes the data of a tenant from Redis. */
export type Drop = (fence: number) => Promise<void>;

/** Returns the routes, not including the removed data. */
export type Leaves = (routes: TenantRoutes) => TenantRoutes;

/**
 * Runs `drop` between two syncs of a tenant.
 *
 * @param leaves if not set, or if `drop` fails, the next sync will read the routes from Redis
 */
export async function removeData(
  { fence, explain }: Pick<SyncDeps, 'fence' | 'explain'>,
  tenant: Tenant,
  drop: Drop,
  leaves: Leaves | undefined,
): Promise<void> {
  async function run(epoch: number): Promise<void> {
    const { stored } = tenant;
    let left: StoredRoutes | undefined;
    try {
      await drop(epoch);
      // If the routes have been forgotten in the meantime, the remaining data is unknown as well.
      if (stored !== undefined && tenant.stored === stored && leaves !== undefined) {
        left = { ready: stored.ready, routes: leaves(stored.routes) };
      }
    } catch (error) {
      throw explain(error);
    } finally {
      tenant.closing = undefined;
      tenant.stored = left;
      tenant.remembered = left?.routes;
    }
  }
  // Read the fence first so that nothing is changed if it is missing.
  await tenant.runs.alone(() => run(fence()));
}
