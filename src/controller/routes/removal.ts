import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { StoredRoutes } from '../../record/control-plan.ts';
import type { SyncDeps } from './sync.ts';
import type { Tenant } from './tenant.ts';

/** Removes the data of a tenant from Redis. */
export type Drop = (fence: number) => Promise<void>;

/** Returns the routes without the data that was removed. */
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
      // If the routes were forgotten in the meantime, we don't know what remains of them either.
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
  // Read the fence first, so nothing is changed if it is missing.
  await tenant.runs.alone(() => run(fence()));
}
