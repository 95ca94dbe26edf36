import type { IntegrationRoute, SubscriptionRoute, TenantRoutes } from '../../core/routing/routes.ts';
import type { StoredRoutes } from '../../record/control-plan.ts';
import { keepUnowned } from '../../record/unowned-routes.ts';
import { tenantKeys } from '../../redis/keys.ts';

/**
 * If Redis has lost the record of a subscription without an object, the subscription is added to `wanted`. These
 * subscriptions are closed, but their inboxes are kept in the part. Without a record, they would be removed from the
 * part.
 *
 * @param stored routes read from Redis. The routes written by this leader can't be lost without being detected
 * @param remembered the last routes known to be in Redis. Does not include any routes that were removed later
 */
export function keepLost(
  wanted: TenantRoutes,
  { routes, ready, hashes }: StoredRoutes,
  remembered: TenantRoutes | undefined,
): TenantRoutes {
  if (remembered === undefined || hashes === undefined) return wanted;
  const t = tenantKeys(wanted.tenant);
  const index = hashes.get(t.index) ?? {};
  // If another leader has removed an inbox, its name is missing from an index that was not lost.
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
