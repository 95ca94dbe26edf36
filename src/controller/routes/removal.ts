import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { StoredRoutes } from '../../redis/control-plan.ts';
import type { SyncDeps } from './sync.ts';
import type { Tenant } from './tenant.ts';

/** A function that removes data of a tenant from Redis. */
export type Drop = (fence: number) => Promise<void>;

/** A function that returns the routes without the data that was removed. */
export type Leaves = (routes: TenantRoutes) => TenantRoutes;

/**
 * Runs `drop` between two syncs of the tenant.
 *
 * @param leaves if this is not set or if `drop` fails, the routes are read from Redis by the next sync
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
      // If the routes were forgotten in the meantime, the remaining routes are also not known.
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
  // The fence is read first, so that there are no changes if it is missing.
  await tenant.runs.alone(() => run(fence()));
}
