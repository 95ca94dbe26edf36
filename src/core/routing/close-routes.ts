import { generationOf, publicId } from '../ids/ids.ts';
import { type PauseOf, pauseBy } from './compile-routes.ts';
import { coverageSteps } from './coverage.ts';
import { ingressKeysOf } from './ingress-keys.ts';
import { integrationState, routeState } from './integration-state.ts';
import type { IntegrationRoute, SubscriptionRoute, TenantRoutes } from './routes.ts';
import type { IntegrationSnapshot, SubscriptionSnapshot, TenantSnapshot } from './snapshot.ts';
import { finish, mapSteps, type Steps } from './steps.ts';

/** All routes that are closed by the objects of a tenant. */
export interface ClosedTenant {
  /** If nothing is closed, this is the same object as the given routes. */
  readonly routes: TenantRoutes;
  /** Used to look up how a Subscription should be closed, given its UID. */
  readonly closed: ReadonlyMap<string, 'Blocked' | 'Ended'>;
  /** Maps the UID of a Block to the number of covered subscriptions in the routes. */
  readonly paused: ReadonlyMap<string, number>;
}

/**
 * Closes all routes in `stored` that are closed by the objects. Everything else remains unchanged. This applies to
 * subscriptions that are blocked, deleted, or no longer granted, to integrations that are declined, revoked, or
 * deleted, and to ingress keys that are removed or expire earlier. The function is pure. Since it is used for paused
 * workspaces, routes that are closed in `stored` stay closed even if the objects open them.
 */
export function closeRoutes(stored: TenantRoutes, snapshot: TenantSnapshot, nowMs: number): ClosedTenant {
  return finish(closeSteps(stored, snapshot, nowMs));
}

/** Like `closeRoutes`, but yields a piece for each object and for each integration in `stored`. */
export function* closeSteps(stored: TenantRoutes, snapshot: TenantSnapshot, nowMs: number): Steps<ClosedTenant> {
  const covering = yield* coverageSteps(snapshot);
  const integrations = new Map(
    yield* mapSteps(snapshot.integrations, each => [publicId('Integration', snapshot.name, each.name), each] as const),
  );
  const granted = new Map(
    yield* mapSteps(
      snapshot.subscriptions,
      each => [publicId('Subscription', each.namespace, each.name), each] as const,
    ),
  );
  const closed = new Map<string, 'Blocked' | 'Ended'>();
  const paused = new Map<string, number>();

  function close(
    sub: string,
    route: SubscriptionRoute,
    integration: IntegrationSnapshot | undefined,
  ): SubscriptionRoute {
    if (route.route === 'closed') return route;
    const subscription = granted.get(sub);
    if (integration === undefined || subscription === undefined || !isKept(subscription, integration, route)) {
      if (subscription !== undefined) closed.set(subscription.uid, 'Ended');
      const { onUnblock: _, ...rest } = route;
      return { ...rest, route: 'closed', send: 'held', endpoint: '' };
    }
    const blocks = covering(integration.name, route.queue);
    if (blocks.length === 0) return route;
    closed.set(subscription.uid, 'Blocked');
    for (const { uid } of blocks) paused.set(uid, (paused.get(uid) ?? 0) + 1);
    return hold(route, pauseBy(blocks));
  }

  const routes: Record<string, IntegrationRoute> = {};
  for (const [id, old] of Object.entries(stored.integrations)) {
    yield;
    const integration = integrations.get(id);
    const ended = integration === undefined || routeState(integrationState(integration, nowMs)) === 'closed';
    const subscriptions = Object.fromEntries(
      Object.entries(old.subscriptions).map(([sub, route]) => [sub, close(sub, route, integration)]),
    );
    const same = Object.entries(subscriptions).every(([sub, route]) => old.subscriptions[sub] === route);
    const state = ended ? 'closed' : old.state;
    routes[id] = same && state === old.state ? old : { ...old, state, subscriptions };
  }
  const keys = closeKeys(stored.keys, snapshot);
  const same = keys === stored.keys && Object.entries(routes).every(([id, route]) => stored.integrations[id] === route);
  return { routes: same ? stored : { ...stored, keys, integrations: routes }, closed, paused };
}

/**
 * Returns the ingress keys that are left, with the earlier of both expiry times. If nothing is closed, or the keys of
 * the workspace are not known, this is the same object.
 */
function closeKeys(stored: TenantRoutes['keys'], snapshot: TenantSnapshot): TenantRoutes['keys'] {
  if (snapshot.workspace === undefined) return stored;
  const wanted = ingressKeysOf(snapshot);
  const left: Record<string, string> = {};
  for (const [sha256, until] of Object.entries(stored)) {
    const wants = wanted[sha256];
    if (wants === undefined) continue;
    left[sha256] = untilMs(wants) < untilMs(until) ? wants : until;
  }
  return Object.entries(stored).every(([sha256, until]) => left[sha256] === until) ? stored : left;
}

/** Returns the time at which an ingress key expires, in milliseconds. */
function untilMs(until: string): number {
  return until === '' ? Number.POSITIVE_INFINITY : Number(until);
}

/** Returns true if the subscription of this route still exists and is still granted. */
function isKept(subscription: SubscriptionSnapshot, { spec }: IntegrationSnapshot, route: SubscriptionRoute): boolean {
  const granted = spec.workspace === subscription.namespace && spec.declined !== true && spec.revoked !== true;
  return granted && !subscription.deleting && generationOf(subscription.uid) === route.inc;
}

/**
 * If the route is already held, it is returned unchanged. In this case, the policy for the pause will be updated when
 * the routes are compiled the next time.
 */
function hold(route: SubscriptionRoute, pause: PauseOf): SubscriptionRoute {
  if (route.route === 'paused' && route.send === 'held' && route.onUnblock !== undefined) return route;
  return { ...route, ...pause, route: 'paused', send: 'held' };
}
