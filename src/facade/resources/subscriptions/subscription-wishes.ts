import { isDeepStrictEqual } from 'node:util';
import type { Endpoint, EndpointHeader } from '../../../api/endpoint.ts';
import type { SubscriptionSpec, SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import type { ProblemError } from '../../../core/problems/problem.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { EndpointChange, EndpointWish } from './subscription-views.ts';

/** What a caller wants of a subscription. */
export interface SubscriptionWish {
  readonly endpoint?: EndpointWithHeaders | undefined;
  readonly ordering?: SubscriptionSpec['ordering'] | undefined;
  readonly suspended?: boolean | undefined;
}

/** An endpoint whose headers have a value or a place where it is, as the custom resource has them. */
type EndpointWithHeaders = Omit<EndpointWish, 'headers'> & { readonly headers?: readonly EndpointHeader[] | undefined };

/** What a caller wants changed. An endpoint of null takes it away. */
interface WantedChange {
  readonly endpoint?: EndpointChange | null | undefined;
  readonly suspended?: boolean | undefined;
}

interface Present {
  readonly spec: SubscriptionSpec;
  readonly status?: SubscriptionStatus | undefined;
}

/** An endpoint as it is written: headers in the order of their names, fields that are absent left out. */
function endpointOf({ url, timeoutSeconds, maxPerSecond, retrySchedule, headers = [] }: EndpointWithHeaders): Endpoint {
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

/** Returns the headers with the stored values of those that come without one. @throws Refusal 422 where none is stored */
function keepValues(
  wanted: NonNullable<EndpointChange['headers']>,
  stored: readonly EndpointHeader[] = [],
): EndpointHeader[] {
  const errors: ProblemError[] = [];
  const headers = wanted.map(({ name, value }, i): EndpointHeader => {
    if (value !== undefined) return { name, value };
    const kept = stored.find(header => header.name.toLowerCase() === name.toLowerCase());
    if (kept === undefined) {
      const detail = 'is required: no value is stored for a header of this name';
      errors.push({ pointer: `/endpoint/headers/${i}/value`, detail });
    }
    return { ...kept, name };
  });
  if (errors.length > 0) throw new Refusal('invalid_request', { errors });
  return headers;
}

/**
 * Returns the wish that a change of a subscription comes to. An endpoint is taken away only by null: who sends `suspended`
 * alone does not mean it.
 *
 * @throws Refusal 422 where the change leaves out an endpoint that is there, or a value that nothing stores
 */
export function wishOfChange({ endpoint, suspended }: WantedChange, present: SubscriptionSpec): SubscriptionWish {
  if (endpoint === null) return { suspended };
  if (endpoint === undefined) {
    if (present.endpoint === undefined) return { suspended };
    const detail = 'is required: send the endpoint as it is to be, or null to take it away';
    throw new Refusal('invalid_request', { errors: [{ pointer: '/endpoint', detail }] });
  }
  const { maxPerSecond, headers, ...rest } = endpoint;
  return {
    endpoint: {
      ...rest,
      ...(maxPerSecond === null || maxPerSecond === undefined ? {} : { maxPerSecond }),
      ...(headers === undefined ? {} : { headers: keepValues(headers, present.endpoint?.headers) }),
    },
    suspended,
  };
}
