import { chooseHeaders } from '../../api/context-headers.ts';
import type { HeaderSeals } from '../delivery/header-seal.ts';
import { generationOf, publicId, tenantId } from '../ids/ids.ts';
import type { LimitPolicy } from '../limits/limits.ts';
import { coverageSteps } from './coverage.ts';
import { headersOf } from './endpoint-headers.ts';
import { ingressKeysOf } from './ingress-keys.ts';
import { integrationState, routeState } from './integration-state.ts';
import { payerOf } from './payer.ts';
import { retentionMsOf } from './retention.ts';
import { valueWithoutRoom } from './route-limits.ts';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from './routes.ts';
import { createRoutesMade, type RoutesMade } from './routes-made.ts';
import type {
  BlockSnapshot,
  IntegrationSnapshot,
  StreamSnapshot,
  SubscriptionSnapshot,
  TenantSnapshot,
} from './snapshot.ts';
import { finish, type Steps } from './steps.ts';
import {
  circumstancesOf,
  type EndpointOptions,
  judge,
  pausedRoute,
  type SubscriptionVerdict,
  subscriptionRoute,
} from './subscription-route.ts';

export interface CompileOptions extends EndpointOptions {
  /** Byte quota of a queue. */
  readonly queueMaxBytes: number;
  /** The account limits. If absent, the routes contain none. */
  readonly limits?: LimitPolicy;
  /** Decrypts the sealed value of a header. Returns undefined if this is not possible. */
  readonly openHeader: HeaderSeals['open'];
  /** Called with an error that is not caused by the value of a spec. The message of the error may contain secrets. */
  readonly onUnexpected?: (error: unknown) => void;
  /** Results of earlier calls that can be reused. If absent, everything is computed. */
  readonly made?: RoutesMade;
}

export interface CompiledTenant {
  readonly routes: TenantRoutes;
  /** By UID of the Subscription. */
  readonly verdicts: ReadonlyMap<string, SubscriptionVerdict>;
  /** Maps the UID of each covering Block to the number of admitted subscriptions it covers. */
  readonly paused: ReadonlyMap<string, number>;
}

/**
 * Compiles a tenant's routes. The function is pure and only depends on the current objects. A subscription is live if
 * it is requested and not blocked, where `covered(I,S) = block of S for I, or block of a package that contains S for
 * I`.
 */
export function compileRoutes(snapshot: TenantSnapshot, options: CompileOptions): CompiledTenant {
  return finish(compileSteps(snapshot, options));
}

/** Like `compileRoutes`, but yields a piece for each object. */
export function* compileSteps(snapshot: TenantSnapshot, options: CompileOptions): Steps<CompiledTenant> {
  const { name, workspace, held = false } = snapshot;
  const tenant = tenantId(name);
  const open = workspace !== undefined;
  const { made = createRoutesMade() } = options;
  const streams = new Map(snapshot.streams.map(stream => [stream.name, stream]));
  const integrations = new Map(snapshot.integrations.map(integration => [integration.name, integration]));
  const coveringBlocks = yield* coverageSteps(snapshot);
  const verdicts = new Map<string, SubscriptionVerdict>();
  const paused = new Map<string, number>();

  const queues: Record<string, QueueRoute> = {};
  for (const stream of snapshot.streams) queues[stream.name] = queueOf(made, tenant, stream, open, options);

  const subscriptionsOf = new Map<string, Record<string, SubscriptionRoute>>();
  /** The name of the Subscription that owns the integration and stream pair. */
  const winners = new Map<string, string>();
  for (const subscription of [...snapshot.subscriptions].sort(byAge)) {
    yield;
    const { integration: to, stream: from } = subscription.spec;
    const integration = integrations.get(to);
    const stream = streams.get(from);
    const pair = `${to}\0${from}`;
    const admission = admit(subscription, integration, stream, open || held, winners.has(pair));
    const ready = held && admission !== 'WaitingForGrant' ? 'WaitingForWorkspace' : admission;
    const older = ready === 'Duplicate' ? { about: winners.get(pair) ?? '' } : {};
    if (ready !== 'Admitted') verdicts.set(subscription.uid, { ready, live: 'NotAdmitted', ...older });
    // Nothing waits for a subscription that was never admitted.
    const isRouted = admission === 'Admitted' && !(held && subscription.admittedMs === undefined);
    if (!isRouted || integration === undefined || stream === undefined) continue;
    winners.set(pair, subscription.name);
    const { uid, spec } = subscription;
    const names = made.names(spec, [subscription.namespace, subscription.name, uid], () => ({
      id: publicId('Subscription', subscription.namespace, subscription.name),
      generation: generationOf(uid),
    }));
    const blocks = coveringBlocks(to, from);
    for (const block of blocks) paused.set(block.uid, (paused.get(block.uid) ?? 0) + 1);
    const gen = (queues[stream.name] as QueueRoute).gen;
    const { verdict, route } = admitted(subscription, names, gen, { blocks, held }, made, options);
    // The route stays open. The part is held back instead. Events that are already in the inbox are delivered.
    const short = verdict.live === 'Live' && snapshot.account?.short === true;
    if (!held) verdicts.set(uid, short ? { ...verdict, live: 'InsufficientTokens' } : verdict);
    const routes = subscriptionsOf.get(to) ?? {};
    routes[names.id] = route;
    subscriptionsOf.set(to, routes);
  }

  const integrationRoutes: Record<string, IntegrationRoute> = {};
  for (const integration of snapshot.integrations) {
    yield;
    const { spec, uid } = integration;
    const { id } = made.names(spec, [name, integration.name, uid], () => ({
      id: publicId('Integration', name, integration.name),
      generation: generationOf(uid),
    }));
    const state = open || held ? routeState(integrationState(integration, options.nowMs)) : 'closed';
    const sinceMs = integration.acceptedMs ?? options.nowMs;
    const subscriptions = subscriptionsOf.get(integration.name) ?? {};
    const circumstances = [id, state, sinceMs, ...Object.entries(subscriptions).flat()];
    integrationRoutes[id] = made.integration(spec, circumstances, () => ({ state, sinceMs, subscriptions }));
  }
  const keys = ingressKeysOf(snapshot);
  const routes: TenantRoutes = {
    tenant,
    ...payerOf(snapshot, options.limits),
    keys,
    queues,
    integrations: integrationRoutes,
  };
  return { routes, verdicts, paused };
}

/**
 * Returns the verdict and the route of an admitted subscription. If its spec contains a value that can't be applied,
 * only this subscription is paused. The CRDs do not permit such values, but the objects may have been stored using
 * others.
 */
function admitted(
  subscription: SubscriptionSnapshot,
  names: { readonly id: string; readonly generation: string },
  gen: string,
  { blocks, held }: { readonly blocks: readonly BlockSnapshot[]; readonly held: boolean },
  made: RoutesMade,
  options: CompileOptions,
): { readonly verdict: SubscriptionVerdict; readonly route: SubscriptionRoute } {
  const { spec } = subscription;
  const sinceMs = subscription.admittedMs ?? options.nowMs;
  const pause = pauseBy(blocks);
  try {
    const headers = headersOf(subscription, names.id, made, options);
    const verdict = judge(subscription, held || blocks.length > 0, headers, made, options);
    const others = circumstancesOf(subscription, options);
    const circumstances = [names, gen, verdict.live, pause.onUnblock, sinceMs, headers, ...others];
    const route = made.subscription(spec, circumstances, () => ({
      ...subscriptionRoute(names, subscription, { gen, sinceMs }, verdict, headers, options),
      ...pause,
    }));
    const value = valueWithoutRoom(route);
    if (value !== undefined) throw new RangeError(`${value} is out of range`);
    return { verdict, route };
  } catch (error) {
    const isRange = error instanceof RangeError;
    if (!isRange) options.onUnexpected?.(error);
    const detail = isRange ? error.message.slice(0, 200) : 'an unexpected error occurred';
    const route = { ...pausedRoute(names, spec, { gen, sinceMs }), ...pause };
    return { verdict: { ready: 'Admitted', live: 'SpecRefused', detail }, route };
  }
}

type Age = Pick<SubscriptionSnapshot, 'createdMs' | 'uid'>;

/** Sorts by age, then by UID. If there are several subscriptions for the same pair, the first one is used. */
export function byAge(a: Age, b: Age): number {
  return a.createdMs - b.createdMs || (a.uid < b.uid ? -1 : 1);
}

export type PauseOf = Pick<SubscriptionRoute, 'onUnblock'>;

/** Returns how to handle the backlog of a pause. The backlog is only skipped if all Blocks have this policy. */
export function pauseBy(blocks: readonly BlockSnapshot[]): PauseOf {
  if (blocks.length === 0) return {};
  return { onUnblock: blocks.every(({ spec }) => spec.onUnblock === 'SkipToNow') ? 'skip' : 'continue' };
}

/**
 * Returns the same result for missing, foreign, declined, and revoked integrations, so that callers can't find out
 * which ones exist.
 */
function admit(
  subscription: SubscriptionSnapshot,
  integration: IntegrationSnapshot | undefined,
  stream: StreamSnapshot | undefined,
  open: boolean,
  taken: boolean,
): SubscriptionVerdict['ready'] {
  const { spec } = integration ?? {};
  const granted = spec?.workspace === subscription.namespace && spec.declined !== true && spec.revoked !== true;
  if (!granted || subscription.deleting) return 'WaitingForGrant';
  if (!open) return 'WaitingForWorkspace';
  if (stream === undefined) return 'WaitingForStream';
  if (taken) return 'Duplicate';
  const isNew = subscription.admittedMs === undefined;
  if (isNew && stream.deleting) return 'WaitingForStream';
  if (isNew && stream.spec.public !== true) return 'StreamDeprecated';
  return 'Admitted';
}

function queueOf(
  made: RoutesMade,
  tenant: string,
  { name, uid, spec, deleting }: StreamSnapshot,
  open: boolean,
  { queueMaxBytes }: CompileOptions,
): QueueRoute {
  const state = open && !deleting ? 'open' : 'closing';
  return made.queue(spec, [tenant, name, uid, state, queueMaxBytes], () => ({
    gen: generationOf(uid),
    state,
    retentionMs: retentionMsOf(spec.retention),
    maxBytes: queueMaxBytes,
    source: `/events/${tenant}/${name}`,
    eventTypes: [...new Set(spec.eventTypes ?? [])],
    contextHeaders: chooseHeaders(spec.contextHeaders),
  }));
}
