import type { IntegrationRoute, SubscriptionRoute, TenantRoutes } from '../../core/routing/routes.ts';
import { keepUnowned, type StoredRoutes } from '../../record/control-plan.ts';
import { tenantKeys } from '../../redis/keys.ts';

/**
 * Adds subscriptions without an object to `wanted` if Redis has lost their record. They are closed, and their inboxes
 * stay in the part. Without a record, the part would remove them.
 *
 * @param stored routes read from Redis. The routes written by this leader can't be lost unnoticed
 * @param remembered the last known routes in Redis, without anything that was removed since
 */
export function keepLost(
  wanted: TenantRoutes,
  { routes, ready, hashes }: StoredRoutes,
  remembered: TenantRoutes | undefined,
): TenantRoutes {
  if (remembered === undefined || hashes === undefined) return wanted;
  const t = tenantKeys(wanted.tenant);
  const index = hashes.get(t.index) ?? {};
  // If another leader has removed an inbox, its name is missing in an index that was not lost.
  const isNamed = (integration: string, sub: string, { inc }: SubscriptionRoute) =>
    !ready.has(t.meta) || index[`s:${integration}:${sub}`] === inc;
  const isKnown = ({ integrations }: TenantRoutes, integration: string, sub: string) =>
    integrations[integration]?.subscriptions[sub] !== undefined;
  const lost: Record<string, IntegrationRoute> = {};
  for (const [integration, route] of Object.entries(remembered.integrations)) {
    const subscriptions = Object.entries(route.subscriptions).filter(
      ([sub, of]) =>
        !isKnown(routes, integration, sub) && !isKnown(wanted, integration, sub) && isNamed(integration, sub, of),
    );
    if (subscriptions.length > 0) {
      lost[integration] = { ...route, subscriptions: Object.fromEntries(subscriptions) };
    }
  }
  return Object.keys(lost).length === 0 ? wanted : keepUnowned({ ...wanted, integrations: lost }, wanted);
}
