import { parseDurationMs } from '../../api/durations.ts';
import { ENDPOINT_DEFAULTS, type Endpoint } from '../../api/endpoint.ts';
import type { EndpointConfig } from '../delivery/endpoint-config.ts';
import { isEnabledSince } from '../delivery/endpoint-health.ts';
import type { HeaderFault } from '../delivery/header-field.ts';
import type { KeyRing } from '../delivery/key-ring.ts';
import { missingSigningKey, signedBy } from '../delivery/signing-secret.ts';
import { headerValues, type ResolvedHeader } from './endpoint-headers.ts';
import type { SubscriptionRoute } from './routes.ts';
import type { RoutesMade } from './routes-made.ts';
import type { SubscriptionSnapshot } from './snapshot.ts';

/** The maximum concurrent attempts for one endpoint. */
export const IN_FLIGHT_CAP = 64;

/** Verdicts for which the endpoint must not, or can't, be called. */
const HAS_NO_ENDPOINT: ReadonlySet<SubscriptionVerdict['live']> = new Set([
  'EndpointRefused',
  'WaitingForSecret',
  'HeaderNotReadable',
  'SigningKeyMissing',
]);

export interface EndpointOptions {
  readonly nowMs: number;
  /** Returns `ok`, or a reason code if the endpoint must not be called. */
  readonly judgeEndpoint: (url: string) => string;
  readonly sealEndpoint: (subscription: string, config: EndpointConfig) => string;
  /** Root keys. Signing secrets that are new are derived from the first one. */
  readonly keys: Pick<KeyRing, 'state' | 'first' | 'key'>;
}

/** The reason why a subscription is admitted or not, and whether events flow, as used for its conditions. */
export interface SubscriptionVerdict {
  readonly ready:
    | 'Admitted'
    | 'WaitingForWorkspace'
    | 'WaitingForGrant'
    | 'WaitingForStream'
    | 'Duplicate'
    | 'StreamDeprecated';
  readonly live:
    | 'Live'
    | 'Blocked'
    | 'Suspended'
    | 'EndpointDisabled'
    | 'EndpointRefused'
    | 'WaitingForSecret'
    | 'HeaderNotReadable'
    | 'SigningKeyMissing'
    | 'SpecRefused'
    | 'InsufficientTokens'
    | 'NotAdmitted';
  /** A code for the cause, or a text that can be shown to users. */
  readonly detail?: string;
  /** Additional information about the reason. For a duplicate, this is the name of the older Subscription. */
  readonly about?: string;
}

/** The verdict for each header without a value. */
const VERDICT_OF: Record<HeaderFault, SubscriptionVerdict['live']> = {
  secret_missing: 'WaitingForSecret',
  key_missing: 'WaitingForSecret',
  secret_unread: 'WaitingForSecret',
  header_value_refused: 'EndpointRefused',
  seal_not_opened: 'HeaderNotReadable',
};

/** Returns whether an admitted subscription is live. */
export function judge(
  subscription: SubscriptionSnapshot,
  covered: boolean,
  headers: readonly ResolvedHeader[],
  made: RoutesMade,
  options: EndpointOptions,
): SubscriptionVerdict {
  const { spec, disabledMs, salt } = subscription;
  if (covered) return { ready: 'Admitted', live: 'Blocked' };
  if (spec.suspended === true) return { ready: 'Admitted', live: 'Suspended' };
  if (spec.endpoint === undefined) return { ready: 'Admitted', live: 'Live' };
  const { url } = spec.endpoint;
  const judgement = made.judgement(spec.endpoint, [], () => options.judgeEndpoint(url));
  if (judgement !== 'ok') return { ready: 'Admitted', live: 'EndpointRefused', detail: judgement };
  for (const { field, about } of headers) {
    if (!('fault' in field)) continue;
    return { ready: 'Admitted', live: VERDICT_OF[field.fault], detail: field.why ?? field.fault, about };
  }
  const signed = signing(subscription, options);
  const { secretVersion, rotatedAtMs } = signed;
  const missing = missingSigningKey(options.keys, signed, secretVersion, rotatedAtMs, options.nowMs);
  if (salt !== undefined && missing !== undefined) {
    return { ready: 'Admitted', live: 'SigningKeyMissing', detail: 'root_key_missing', about: `root key ${missing}` };
  }
  if (disabledMs !== undefined && !isEnabledSince(disabledMs, enabledMsOf(spec.endpoint), options.nowMs)) {
    return { ready: 'Admitted', live: 'EndpointDisabled' };
  }
  return { ready: 'Admitted', live: 'Live' };
}

/** Returns everything else that `subscriptionRoute` depends on: secrets and times. */
export function circumstancesOf(subscription: SubscriptionSnapshot, options: EndpointOptions): readonly unknown[] {
  const { rotatedAtMs, key, previousKey } = signing(subscription, options);
  const enabledMs = pastEnabledMsOf(subscription.spec.endpoint, options.nowMs);
  return [subscription.salt, rotatedAtMs, key, previousKey, options.keys.state(), enabledMs];
}

/** Returns the route of an admitted subscription. */
export function subscriptionRoute(
  names: { readonly id: string; readonly generation: string },
  subscription: SubscriptionSnapshot,
  start: Pick<SubscriptionRoute, 'gen' | 'sinceMs'>,
  { live }: SubscriptionVerdict,
  headers: readonly ResolvedHeader[],
  options: EndpointOptions,
): SubscriptionRoute {
  const { salt, spec } = subscription;
  const { endpoint } = spec;
  const sends = live === 'Live' && endpoint !== undefined && salt !== undefined;
  const enabledMs = pastEnabledMsOf(endpoint, options.nowMs);
  return {
    ...pausedRoute(names, spec, start),
    route: live === 'Blocked' || live === 'Suspended' ? 'paused' : 'open',
    send: sends ? 'open' : 'held',
    ...(endpoint?.maxPerSecond === undefined ? {} : { maxPerSecond: endpoint.maxPerSecond }),
    ...(enabledMs === undefined ? {} : { enabledMs }),
    endpoint:
      endpoint === undefined || salt === undefined || HAS_NO_ENDPOINT.has(live)
        ? ''
        : options.sealEndpoint(names.id, {
            url: endpoint.url,
            timeoutMs: (endpoint.timeoutSeconds ?? ENDPOINT_DEFAULTS.timeoutSeconds) * 1_000,
            retryMs: (endpoint.retrySchedule ?? ENDPOINT_DEFAULTS.retrySchedule).map(parseDurationMs),
            headers: headerValues(headers),
            salt,
            ...signing(subscription, options),
          }),
  };
}

/**
 * Returns the route of a subscription whose spec can't be applied. The events of this subscription are kept until their
 * retention period ends.
 */
export function pausedRoute(
  { generation }: { readonly generation: string },
  { stream, ordering }: SubscriptionSnapshot['spec'],
  { gen, sinceMs }: Pick<SubscriptionRoute, 'gen' | 'sinceMs'>,
): SubscriptionRoute {
  return {
    inc: generation,
    queue: stream,
    gen,
    route: 'paused',
    send: 'held',
    sinceMs,
    unordered: ordering === 'None',
    cap: IN_FLIGHT_CAP,
    endpoint: '',
  };
}

/**
 * Returns the same as `enabledMsOf`. A time in the future is undefined because it has no effect yet. So is a time
 * before 1970, because a part has no room for it.
 */
function pastEnabledMsOf(endpoint: Pick<Endpoint, 'enabledAt'> | undefined, nowMs: number): number | undefined {
  const enabledMs = enabledMsOf(endpoint);
  return isEnabledSince(0, enabledMs, nowMs) ? enabledMs : undefined;
}

/** Returns the last time at which the owner has enabled the endpoint, in ms. */
export function enabledMsOf(endpoint: Pick<Endpoint, 'enabledAt'> | undefined): number | undefined {
  return endpoint?.enabledAt === undefined ? undefined : Date.parse(endpoint.enabledAt);
}

/**
 * A version that has not been used for signing is treated as if it was rotated now so that the previous version remains
 * in use.
 */
function signing(
  { spec, signed, rotatedMs }: SubscriptionSnapshot,
  { nowMs, keys }: Pick<EndpointOptions, 'nowMs' | 'keys'>,
): Pick<EndpointConfig, 'secretVersion' | 'rotatedAtMs' | 'key' | 'previousKey'> {
  const secretVersion = spec.endpoint?.secretVersion ?? ENDPOINT_DEFAULTS.secretVersion;
  const rotatedAtMs = signed?.version !== undefined && secretVersion > signed.version ? nowMs : rotatedMs;
  const by = signedBy(signed, secretVersion, keys.first().id);
  return { secretVersion, ...(rotatedAtMs === undefined ? {} : { rotatedAtMs }), ...by };
}
