import { isDeepStrictEqual } from 'node:util';
import type { Endpoint } from '../../api/endpoint.ts';
import type { SubscriptionSpec, SubscriptionStatus } from '../../api/subscription.ts';
import type { EndpointWish } from './subscription-views.ts';

/** What a caller wants of a subscription. */
export interface SubscriptionWish {
  readonly endpoint?: EndpointWish | undefined;
  readonly ordering?: SubscriptionSpec['ordering'] | undefined;
  readonly suspended?: boolean | undefined;
}

interface Present {
  readonly spec: SubscriptionSpec;
  readonly status?: SubscriptionStatus | undefined;
}

/** An endpoint as it is written: headers in the order of their names, fields that are absent left out. */
function endpointOf({ url, timeoutSeconds, maxPerSecond, retrySchedule, headers = [] }: EndpointWish): Endpoint {
  const sorted = headers.toSorted((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  return {
    url,
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
    ...(maxPerSecond === undefined ? {} : { maxPerSecond }),
    ...(retrySchedule === undefined ? {} : { retrySchedule }),
    ...(sorted.length === 0 ? {} : { headers: sorted }),
  };
}

/** Whether a subscription is as wanted. What a wish to subscribe does not name (suspended, the secret) may be anything. */
export function isAsWished({ endpoint, ordering }: SubscriptionSpec, wish: SubscriptionWish): boolean {
  const { secretVersion: _version, enabledAt: _enabledAt, ...present }: Partial<Endpoint> = endpoint ?? {};
  const wanted = wish.endpoint === undefined ? {} : endpointOf(wish.endpoint);
  const sorted = present.headers?.toSorted((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  const same = isDeepStrictEqual({ ...present, ...(sorted && { headers: sorted }) }, wanted);
  return same && ordering === (wish.ordering ?? 'ByGroupKey');
}

/**
 * The fields of a subscription that a wish changes. The version of the signing secret never goes back, not even when the
 * endpoint was away meanwhile: an older secret may have leaked.
 */
export function wishedFields(
  wish: SubscriptionWish,
  present?: Present,
): Pick<SubscriptionSpec, 'endpoint' | 'suspended'> {
  const suspended = wish.suspended === true ? { suspended: true } : {};
  if (wish.endpoint === undefined) return suspended;
  const before = present?.spec.endpoint;
  const signed = present?.status?.signing?.version ?? 1;
  const secretVersion = before === undefined ? (signed > 1 ? signed : undefined) : before.secretVersion;
  return {
    endpoint: {
      ...endpointOf(wish.endpoint),
      ...(secretVersion === undefined ? {} : { secretVersion }),
      ...(before?.enabledAt === undefined ? {} : { enabledAt: before.enabledAt }),
    },
    ...suspended,
  };
}
