import type { ControlAudit } from '../../redis/control-audit.ts';
import { keepUnowned, planRoutes } from '../../redis/control-plan.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';
import { emptyRoutes } from './orphans.ts';

/**
 * Closes the routes and gates of a tenant (`ten_…`) that no object names. No worker is responsible for such a tenant,
 * so this needs to happen here.
 */
export async function closeUnnamedTenant(
  deps: {
    readonly store: Pick<ControlAudit, 'probe'>;
    readonly control: Pick<ControlStore, 'patch' | 'readTenant' | 'applyParts'>;
    /** Current time in milliseconds, according to the Redis clock. */
    readonly nowMs: () => number;
  },
  tenant: string,
  fence: number,
): Promise<void> {
  const { store, control } = deps;
  const stored = await control.readTenant(tenant, fence);
  await control.applyParts?.({
    fence,
    have: stored.routes,
    want: keepUnowned(stored.routes, emptyRoutes(tenant)),
    isKnown: true,
    openKeys: () => new Map(),
  });
  await control.patch(fence, planRoutes(stored, emptyRoutes(tenant), deps.nowMs()).patches);
  const integrations = Object.keys(stored.routes.integrations);
  const sizes = await store.probe([
    { tenant, gates: [] },
    ...integrations.map(integration => ({ integration, groupKeys: [] })),
  ]);
  const t = tenantKeys(tenant);
  const places = [
    { meta: t.meta, key: t.gates },
    ...integrations.map(integrationKeys).map(({ meta, act }) => ({ meta, key: act })),
  ];
  const full = places.filter((_place, at) => (sizes[at]?.size ?? 0) > 0);
  await control.patch(
    fence,
    full.map(({ meta, key }) => ({ meta, ops: [{ command: 'UNLINK' as const, key, args: [] }] })),
  );
}
