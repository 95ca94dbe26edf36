import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { StoredRoutes } from '../../redis/control-plan.ts';
import type { SyncDeps } from './sync.ts';
import type { Tenant } from './tenant.ts';

/** Removes data of a tenant from Redis. */
export type Drop = (fence: number) => Promise<void>;

/** Returns the routes without the removed data. */
export type Leaves = (routes: TenantRoutes) => TenantRoutes;

/**
 * Runs `drop` between two syncs of the tenant.
 *
 * @param leaves if absent, or if `drop` fails, the next sync reads the routes
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
      // Forgotten meanwhile: the remaining routes are not known either.
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
  // Without a fence, nothing changes.
  await tenant.runs.alone(() => run(fence()));
}
