import { isDeepStrictEqual } from 'node:util';
import type { Endpoint, EndpointHeader } from '../../../api/endpoint.ts';
import type { SubscriptionSpec, SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import type { HeaderSeals } from '../../../core/delivery/header-seal.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { ProblemError } from '../../../core/problems/problem.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { ObjectName } from '../../../kube/object.ts';
import type { Cached } from '../../caches/cached.ts';
import type { EndpointChange, EndpointRequest } from './subscription-views.ts';

/** Subscription as sent in a request. */
export interface SubscriptionRequest {
  readonly endpoint?: EndpointWithHeaders | undefined;
  readonly ordering?: SubscriptionSpec['ordering'] | undefined;
  readonly suspended?: boolean | undefined;
}

/** Endpoint as stored in the custom resource. Each header has either a value or a reference to a value. */
type EndpointWithHeaders = Omit<EndpointRequest, 'headers'> & {
  readonly headers?: readonly EndpointHeader[] | undefined;
};

/** Change as sent in a request. A null endpoint will be removed. */
interface WantedChange {
  readonly endpoint?: EndpointChange | null | undefined;
  readonly suspended?: boolean | undefined;
}

/** Encrypts the header values of a subscription. */
export interface ValueSeals {
  readonly seal: (header: string, value: string) => string;
  /** Returns undefined if a value can't be decrypted. */
  readonly open: (header: string, sealed: string) => string | undefined;
}

/**
 * Returns the seals of the Subscription with this name, for values sent to the URL.
 *
 * @param before as stored, if it exists
 */
export function sealsOf(
  { seal, open }: HeaderSeals,
  { namespace = '', name }: ObjectName,
  before: Pick<Cached<'Subscription'>, 'metadata' | 'status'> | undefined,
  url: string,
): ValueSeals {
  const createdMs = Date.parse(before?.metadata.creationTimestamp ?? '');
  const owner = {
    subscription: publicId('Subscription', namespace, name),
    salt: before?.status?.signing?.salt,
    createdMs: Number.isNaN(createdMs) ? undefined : createdMs,
    url,
  };
  return { seal: (header, value) => seal(owner, header, value), open: (header, sealed) => open(owner, header, sealed) };
}

function originOf(url: string): string {
  return URL.parse(url)?.origin ?? '';
}

interface Present {
  readonly spec: SubscriptionSpec;
  readonly status?: SubscriptionStatus | undefined;
}

/**
 * Returns the endpoint in the format used for custom resources. Headers are sorted by name. Fields without a value are
 * omitted.
 */
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

/**
 * Returns true if a subscription matches the request. The `suspended` field and the secret are not part of the request,
 * so they are not compared.
 */
export function matchesRequest({ endpoint, ordering }: SubscriptionSpec, requested: SubscriptionRequest): boolean {
  const { secretVersion: _version, enabledAt: _enabledAt, ...present }: Partial<Endpoint> = endpoint ?? {};
  const wanted = requested.endpoint === undefined ? {} : endpointOf(requested.endpoint);
  const sorted = present.headers?.toSorted((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  const same = isDeepStrictEqual({ ...present, ...(sorted && { headers: sorted }) }, wanted);
  return same && ordering === (requested.ordering ?? 'ByGroupKey');
}

/**
 * Returns the subscription fields that are changed by a request. The signing secret's version must never decrease
 * even if the endpoint was removed in the meantime, because an older secret may have been leaked.
 */
export function requestedFields(
  requested: SubscriptionRequest,
  present?: Present,
): Pick<SubscriptionSpec, 'endpoint' | 'suspended'> {
  const suspended = requested.suspended === true ? { suspended: true } : {};
  if (requested.endpoint === undefined) return suspended;
  const before = present?.spec.endpoint;
  const signed = present?.status?.signing?.version ?? 1;
  const secretVersion = before === undefined ? (signed > 1 ? signed : undefined) : before.secretVersion;
  return {
    endpoint: {
      ...endpointOf(requested.endpoint),
      ...(secretVersion === undefined ? {} : { secretVersion }),
      ...(before?.enabledAt === undefined ? {} : { enabledAt: before.enabledAt }),
    },
    ...suspended,
  };
}

function findHeader(stored: readonly EndpointHeader[], name: string): EndpointHeader | undefined {
  return stored.find(header => header.name.toLowerCase() === name.toLowerCase());
}

/**
 * Returns a header with its value encrypted. Headers which are already stored with the same value are not changed, so
 * repeating a request has no effect.
 */
function sealHeader(name: string, value: string, stored: readonly EndpointHeader[], seals: ValueSeals): EndpointHeader {
  const kept = findHeader(stored, name);
  const known = kept?.valueSealed === undefined ? kept?.value : seals.open(name, kept.valueSealed);
  return known === value ? { ...kept, name } : { name, valueSealed: seals.seal(name, value) };
}

/** Returns a request with its header values encrypted. @param present as stored, if it exists */
export function sealRequest(
  requested: SubscriptionRequest,
  present: Pick<SubscriptionSpec, 'endpoint'> | undefined,
  seals: ValueSeals,
): SubscriptionRequest {
  const { endpoint } = requested;
  if (endpoint?.headers === undefined) return requested;
  const stored = present?.endpoint?.headers ?? [];
  const headers = endpoint.headers.map(header =>
    header.value === undefined ? header : sealHeader(header.name, header.value, stored, seals),
  );
  return { ...requested, endpoint: { ...endpoint, headers } };
}

/**
 * Returns the headers of a request with encrypted values. If a header was sent without a value, its stored value is
 * used.
 *
 * @throws Refusal 422 if there is no stored value, or if it must not be sent to the host of the new URL
 */
function keepValues(
  { url, headers: wanted = [] }: Pick<EndpointChange, 'url' | 'headers'>,
  present: Endpoint | undefined,
  seals: ValueSeals,
): EndpointHeader[] {
  const errors: ProblemError[] = [];
  const stored = present?.headers ?? [];
  const moves = present !== undefined && originOf(present.url) !== originOf(url);
  const headers = wanted.map(({ name, value }, i): EndpointHeader => {
    if (value !== undefined) return sealHeader(name, value, stored, seals);
    const kept = findHeader(stored, name);
    const pointer = `/endpoint/headers/${i}/value`;
    if (kept === undefined) {
      errors.push({ pointer, detail: 'is required because there is no stored value for this header' });
    } else if (moves) {
      const detail = `is required because the URL changes from ${originOf(present.url)} to ${originOf(url)}. The stored value is only sent to the former`;
      errors.push({ pointer, detail });
    }
    return { ...kept, name };
  });
  if (errors.length > 0) throw new Refusal('invalid_request', { errors });
  return headers;
}

/**
 * Returns the subscription for a change. The endpoint is only removed if it is null, which allows callers to send
 * `suspended` without an endpoint.
 *
 * @throws Refusal 422 if the change omits an existing endpoint, or a header value that isn't stored
 */
export function requestOfChange(
  { endpoint, suspended }: WantedChange,
  present: SubscriptionSpec,
  seals: ValueSeals,
): SubscriptionRequest {
  if (endpoint === null) return { suspended };
  if (endpoint === undefined) {
    if (present.endpoint === undefined) return { suspended };
    const detail = 'is required. Send the complete endpoint, or null to remove it';
    throw new Refusal('invalid_request', { errors: [{ pointer: '/endpoint', detail }] });
  }
  const { maxPerSecond, headers, ...rest } = endpoint;
  return {
    endpoint: {
      ...rest,
      ...(maxPerSecond === null || maxPerSecond === undefined ? {} : { maxPerSecond }),
      ...(headers === undefined ? {} : { headers: keepValues(endpoint, present.endpoint, seals) }),
    },
    suspended,
  };
}
