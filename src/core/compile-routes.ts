import { chooseHeaders } from '../api/context-headers.ts';
import { parseDurationMs } from '../api/durations.ts';
import { ENDPOINT_DEFAULTS } from '../api/endpoint.ts';
import type { EndpointConfig } from './endpoint-config.ts';
import { generationOf, publicId, tenantId } from './ids.ts';
import { integrationState, routeState } from './integration-state.ts';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from './routes.ts';
import type { IntegrationSnapshot, StreamSnapshot, SubscriptionSnapshot, TenantSnapshot } from './snapshot.ts';

/** Attempts in flight at once towards one endpoint. */
export const IN_FLIGHT_CAP = 64;

export interface CompileOptions {
  readonly nowMs: number;
  /** Byte quota of a queue. */
  readonly queueMaxBytes: number;
  /** `ok`, or why the endpoint may not be called, as one word. */
  readonly judgeEndpoint: (url: string) => string;
  readonly sealEndpoint: (subscription: string, config: EndpointConfig) => string;
}

/** Why a subscription is admitted or not, and whether events flow: what its conditions say. */
export interface SubscriptionVerdict {
  readonly ready:
    | 'Admitted'
    | 'WaitingForWorkspace'
    | 'WaitingForGrant'
    | 'WaitingForStream'
    | 'Duplicate'
    | 'StreamDeprecated';
  readonly live: 'Live' | 'Blocked' | 'Suspended' | 'EndpointRefused' | 'IntegrationClosed' | 'NotAdmitted';
  readonly detail?: string;
}

export interface CompiledTenant {
  readonly routes: TenantRoutes;
  /** By UID of the Subscription. */
  readonly verdicts: ReadonlyMap<string, SubscriptionVerdict>;
}

/**
 * The routes of one tenant, from its objects alone: pure, so that nothing but the objects decides, whatever happened
 * before. A subscription is live exactly when it is wanted and not covered:
 * `covered(I,S) = block of S for I, or block of a package that contains S for I`.
 */
export function compileRoutes(snapshot: TenantSnapshot, options: CompileOptions): CompiledTenant {
  const { name, workspace } = snapshot;
  const tenant = tenantId(name);
  const open = workspace !== undefined;
  const streams = new Map(snapshot.streams.map(stream => [stream.name, stream]));
  const integrations = new Map(snapshot.integrations.map(integration => [integration.name, integration]));
  const covered = coverage(snapshot);
  const verdicts = new Map<string, SubscriptionVerdict>();

  const queues: Record<string, QueueRoute> = {};
  for (const stream of snapshot.streams) queues[stream.name] = queueOf(tenant, stream, open, options);

  const subscriptionsOf = new Map<string, Record<string, SubscriptionRoute>>();
  const winners = new Set<string>();
  for (const subscription of [...snapshot.subscriptions].sort(byAge)) {
    const { integration: to, stream: from } = subscription.spec;
    const integration = integrations.get(to);
    const stream = streams.get(from);
    const pair = `${to}\0${from}`;
    const admission = admit(subscription, integration, stream, open, winners.has(pair));
    if (admission !== 'Admitted' || integration === undefined || stream === undefined) {
      verdicts.set(subscription.uid, { ready: admission, live: 'NotAdmitted' });
      continue;
    }
    winners.add(pair);
    const id = publicId('Subscription', subscription.namespace, subscription.name);
    const verdict = judge(subscription, covered(to, from), options);
    verdicts.set(subscription.uid, verdict);
    const routes = subscriptionsOf.get(to) ?? {};
    routes[id] = subscriptionRoute(id, subscription, stream, verdict, options);
    subscriptionsOf.set(to, routes);
  }

  const integrationRoutes: Record<string, IntegrationRoute> = {};
  for (const integration of snapshot.integrations) {
    integrationRoutes[publicId('Integration', name, integration.name)] = {
      state: open ? routeState(integrationState(integration, options.nowMs)) : 'closed',
      sinceMs: integration.acceptedMs ?? options.nowMs,
      subscriptions: subscriptionsOf.get(integration.name) ?? {},
    };
  }
  const payer = open ? publicId('Account', '', workspace.spec.account) : '';
  return { routes: { tenant, payer, keys: keysOf(snapshot), queues, integrations: integrationRoutes }, verdicts };
}

/** Older first, then by UID: the first of two subscriptions for one pair wins. */
function byAge(a: SubscriptionSnapshot, b: SubscriptionSnapshot): number {
  return a.createdMs - b.createdMs || (a.uid < b.uid ? -1 : 1);
}

function coverage(snapshot: TenantSnapshot): (integration: string, stream: string) => boolean {
  const packages = new Map(snapshot.packages.map(each => [each.name, new Set(each.spec.streams ?? [])]));
  const streams = new Map<string, Set<string>>();
  const blockedPackages = new Map<string, Set<string>[]>();
  for (const { spec } of snapshot.blocks) {
    if (spec.target.kind === 'CatalogStream') {
      const blocked = streams.get(spec.integration) ?? new Set();
      streams.set(spec.integration, blocked.add(spec.target.name));
    } else {
      const members = packages.get(spec.target.name);
      if (members === undefined) continue;
      blockedPackages.set(spec.integration, [...(blockedPackages.get(spec.integration) ?? []), members]);
    }
  }
  return (integration, stream) =>
    streams.get(integration)?.has(stream) === true ||
    blockedPackages.get(integration)?.some(members => members.has(stream)) === true;
}

/** Missing, foreign, declined and revoked integrations all say the same: nothing can be probed from outside. */
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
  if (subscription.admittedMs === undefined && stream.spec.public !== true) return 'StreamDeprecated';
  return 'Admitted';
}

function judge(subscription: SubscriptionSnapshot, covered: boolean, options: CompileOptions): SubscriptionVerdict {
  const { spec } = subscription;
  if (covered) return { ready: 'Admitted', live: 'Blocked' };
  if (spec.suspended === true) return { ready: 'Admitted', live: 'Suspended' };
  if (spec.endpoint === undefined) return { ready: 'Admitted', live: 'Live' };
  const judgement = options.judgeEndpoint(spec.endpoint.url);
  if (judgement !== 'ok') return { ready: 'Admitted', live: 'EndpointRefused', detail: judgement };
  const fromSecret = spec.endpoint.headers?.find(header => header.value === undefined);
  if (fromSecret !== undefined) {
    return { ready: 'Admitted', live: 'EndpointRefused', detail: 'header_from_secret' };
  }
  return { ready: 'Admitted', live: 'Live' };
}

function subscriptionRoute(
  id: string,
  subscription: SubscriptionSnapshot,
  stream: StreamSnapshot,
  { live }: SubscriptionVerdict,
  options: CompileOptions,
): SubscriptionRoute {
  const { endpoint, ordering } = subscription.spec;
  const sends = live === 'Live' && endpoint !== undefined;
  return {
    inc: generationOf(subscription.uid),
    queue: stream.name,
    gen: generationOf(stream.uid),
    route: live === 'Blocked' || live === 'Suspended' ? 'paused' : 'open',
    send: sends ? 'open' : 'held',
    sinceMs: subscription.admittedMs ?? options.nowMs,
    unordered: ordering === 'None',
    cap: IN_FLIGHT_CAP,
    endpoint:
      endpoint === undefined || live === 'EndpointRefused'
        ? ''
        : options.sealEndpoint(id, {
            url: endpoint.url,
            timeoutMs: (endpoint.timeoutSeconds ?? ENDPOINT_DEFAULTS.timeoutSeconds) * 1_000,
            retryMs: (endpoint.retrySchedule ?? ENDPOINT_DEFAULTS.retrySchedule).map(parseDurationMs),
            headers: Object.fromEntries((endpoint.headers ?? []).map(({ name, value }) => [name, value ?? ''])),
            ...signing(subscription, endpoint.secretVersion ?? ENDPOINT_DEFAULTS.secretVersion, options.nowMs),
          }),
  };
}

/** A version that has not signed yet is rotated to now, so that its predecessor goes on without a gap. */
function signing({ signedVersion, rotatedMs }: SubscriptionSnapshot, secretVersion: number, nowMs: number) {
  const rotatedAtMs = signedVersion !== undefined && secretVersion > signedVersion ? nowMs : rotatedMs;
  return { secretVersion, ...(rotatedAtMs === undefined ? {} : { rotatedAtMs }) };
}

function queueOf(tenant: string, stream: StreamSnapshot, open: boolean, options: CompileOptions): QueueRoute {
  const { spec } = stream;
  return {
    gen: generationOf(stream.uid),
    state: open && !stream.deleting ? 'open' : 'closing',
    retentionMs: parseDurationMs(spec.retention),
    maxBytes: options.queueMaxBytes,
    source: `/events/${tenant}/${stream.name}`,
    eventTypes: [...new Set(spec.eventTypes ?? [])],
    contextHeaders: chooseHeaders(spec.contextHeaders),
  };
}

function keysOf({ workspace, secretKeys }: TenantSnapshot): Record<string, string> {
  const keys: Record<string, string> = {};
  if (workspace === undefined) return keys;
  for (const { sha256, expiresAt } of workspace.spec.ingressKeys ?? []) {
    keys[sha256] = expiresAt === undefined ? '' : String(Date.parse(expiresAt));
  }
  // A key that is in a Secret, too, ends with the Secret, not with the date that REST gave it.
  for (const sha256 of secretKeys) keys[sha256] = '';
  return keys;
}
