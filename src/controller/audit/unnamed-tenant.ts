import type { ControlAudit } from '../../record/control-audit.ts';
import { planRoutes } from '../../record/control-plan.ts';
import type { ControlStore } from '../../record/control-store.ts';
import { keepUnowned } from '../../record/unowned-routes.ts';
import { integrationKeys } from '../../redis/keys.ts';
import { emptyRoutes } from './orphans.ts';

/**
 * Closes the routes and gates of a tenant (`ten_…`) that is not referenced by any object. No worker is responsible for
 * such a tenant, so this needs to happen here.
 */
export async function closeUnnamedTenant(
  deps: {
    readonly store: Pick<ControlAudit, 'probe'>;
    readonly control: Pick<ControlStore, 'patch' | 'readTenant' | 'applyParts'>;
  },
  tenant: string,
  fence: number,
): Promise<void> {
  const { store, control } = deps;
  const stored = await control.readTenant(tenant, fence);
  await control.applyParts({
    fence,
    have: stored.routes,
    want: keepUnowned(stored.routes, emptyRoutes(tenant)),
    isKnown: true,
    openKeys: () => new Map(),
  });
  await control.patch(fence, planRoutes(stored, emptyRoutes(tenant)).patches);
  const integrations = Object.keys(stored.routes.integrations);
  const sizes = await store.probe(integrations.map(integration => ({ integration, groupKeys: [] })));
  const full = integrations.filter((_integration, at) => (sizes[at]?.size ?? 0) > 0).map(integrationKeys);
  await control.patch(
    fence,
    full.map(({ meta, act }) => ({ meta, ops: [{ command: 'UNLINK' as const, key: act, args: [] }] })),
  );
}
