import type { IntegrationRoute, TenantRoutes } from '../core/routing/routes.ts';
import type { Fields } from './control-plan.ts';

type Parts = Pick<TenantRoutes, 'queues' | 'integrations'>;

/** All names of the tenant in Redis. The controller uses the names to find data without an object. */
export function indexOf(routes: Parts): Fields {
  const index: Fields = {};
  for (const [queue, route] of Object.entries(routes.queues)) index[`q:${queue}`] = route.gen;
  for (const [integration, route] of Object.entries(routes.integrations)) {
    index[`i:${integration}`] = '';
    for (const [sub, { inc }] of Object.entries(route.subscriptions)) index[`s:${integration}:${sub}`] = inc;
  }
  return index;
}

/** The subscriptions of each queue. Includes all subscriptions that are not closed even if a Block covers them. */
export function subscribersOf(routes: Parts): Record<string, Fields> {
  // Create the object without a prototype because `constructor` is a valid name for a queue.
  const byQueue: Record<string, Fields> = Object.create(null);
  for (const queue of Object.keys(routes.queues)) byQueue[queue] = {};
  for (const [integration, route] of Object.entries(routes.integrations)) {
    for (const [sub, { inc, queue, route: open }] of Object.entries(route.subscriptions)) {
      if (open === 'closed') continue;
      byQueue[queue] ??= {};
      (byQueue[queue] as Fields)[integration] = `${sub}.${inc}`;
    }
  }
  return byQueue;
}

/**
 * Returns the routes, without integrations that are the same object in `other`. Since the objects are the same, the
 * results are the same as well.
 */
export function withoutSame(routes: TenantRoutes, other: TenantRoutes): Parts {
  const integrations: Record<string, IntegrationRoute> = {};
  for (const [integration, route] of Object.entries(routes.integrations)) {
    if (route !== other.integrations[integration]) integrations[integration] = route;
  }
  return { queues: routes.queues, integrations };
}

/** Returns the routes without a dropped inbox. A closed inbox does not have any other data. */
export function withoutSubscription(
  routes: TenantRoutes,
  { integration, sub }: { readonly integration: string; readonly sub: string },
): TenantRoutes {
  const of = routes.integrations[integration];
  if (of?.subscriptions[sub] === undefined) return routes;
  const { [sub]: _, ...subscriptions } = of.subscriptions;
  return { ...routes, integrations: { ...routes.integrations, [integration]: { ...of, subscriptions } } };
}
