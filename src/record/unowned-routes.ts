import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from '../core/routing/routes.ts';

/**
 * Adds queues and subscriptions in Redis without an object to `want` as closed. They can only be removed after draining
 * or by an explicit Delete. If there is nothing to add, the same objects are returned.
 */
export function keepUnowned(have: TenantRoutes, want: TenantRoutes): TenantRoutes {
  const queues: Record<string, QueueRoute> = {};
  for (const [queue, route] of Object.entries(have.queues)) queues[queue] = { ...route, state: 'closing' };
  const integrations: Record<string, IntegrationRoute> = { ...want.integrations };
  for (const [integration, old] of Object.entries(have.integrations)) {
    const next = want.integrations[integration];
    if (next === old) continue;
    const unowned = Object.entries(old.subscriptions).filter(([sub]) => next?.subscriptions[sub] === undefined);
    if (next !== undefined && unowned.length === 0) continue;
    const closed = unowned.map(([sub, route]) => [sub, closeRoute(route)] as const);
    const isClosed =
      next === undefined && old.state === 'closed' && closed.every(([, route], i) => route === unowned[i]?.[1]);
    integrations[integration] = isClosed
      ? old
      : {
          state: next?.state ?? 'closed',
          sinceMs: next?.sinceMs ?? old.sinceMs,
          subscriptions: { ...Object.fromEntries(closed), ...next?.subscriptions },
        };
  }
  return { ...want, queues: { ...queues, ...want.queues }, integrations };
}

/** If it is already closed, the same object is returned. */
function closeRoute(route: SubscriptionRoute): SubscriptionRoute {
  const { onUnblock, ...rest } = route;
  if (onUnblock === undefined && rest.route === 'closed' && rest.send === 'held' && rest.endpoint === '') return route;
  return { ...rest, route: 'closed', send: 'held', endpoint: '' };
}
