import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { detailOfLimit, limitItem, policyItem, type Quota } from '../../http/rate-limit-fields.ts';
import { Refusal } from '../../http/refusal.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';
import { callerKey, identityOf } from '../auth/identity.ts';
import type { CallCost } from './route.ts';

/** Seconds whose points can be used at once. Otherwise, all points of a minute would hit the others together. */
const BURST_SECONDS = 10;
/** Points that can always be used at once, unless there are fewer in a minute. Tools send their calls in bursts. */
const BURST_POINTS = 1_000;
/** Number of callers, of accounts, and of addresses, whose buckets are kept in memory. */
export const ENTRIES = 10_000;

/** Limits of the facade. Refused calls are counted by limit. */
export const CALL_LIMITS = ['address', 'caller', 'account', 'concurrency', 'store'] as const;
export type CallLimit = (typeof CALL_LIMITS)[number];

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Points that a call of the route costs. Defaults to 1, also for paths without a route. */
    readonly cost?: CallCost;
  }
}

/**
 * Returns the quota for a limit of points per minute: a bucket of as many points as come back within 10 s, or within the
 * time of 1,000 points, but at most within a minute. Its points can have a fraction.
 */
export function quotaOf(name: CallLimit, perMinute: number): Quota {
  const windowSeconds = Math.min(60, Math.max(BURST_SECONDS, Math.ceil((60 * BURST_POINTS) / perMinute)));
  return { name, points: (perMinute * windowSeconds) / 60, windowSeconds };
}

/** Points per minute on this replica. */
export interface PointLimits {
  /** Each call costs 1 of these, since they only pay for what happens before the caller is known. */
  readonly perAddress: number;
  readonly perCaller: number;
  /**
   * Shared by all callers of an account, whichever of its workspaces they call. Undefined for accounts without a limit. A
   * change applies from the next call.
   */
  readonly ofAccount: (account: string) => number | undefined;
  /** Number of calls of an address that are in progress at the same time. Not points: a call takes one until it ends. */
  readonly inProgress: number;
}

/**
 * Points for an id that the API server has to be asked for, because it is unknown or belongs to somebody else. A guess
 * costs the API server much more than a call that is answered from the caches.
 */
const LOOKUP_COST = 20;

export interface RateLimit {
  /**
   * Takes the points for an id that the API server has to be asked for from the caller's bucket.
   *
   * @throws Refusal 429 `rate_limited` if the caller has too few points left
   */
  readonly chargeLookup: (request: FastifyRequest, reply: FastifyReply) => void;
  /**
   * Takes the points of the call from the account's bucket as well. Must not be called before the caller is known to
   * have access, so that nobody can use up the points of others.
   *
   * @throws Refusal 429 `rate_limited` if the account has too few points left
   */
  readonly chargeAccount: (request: FastifyRequest, reply: FastifyReply, account: string) => void;
  /**
   * Takes more points for a call that does more than its cost covers, from the caller and from the account. Returns
   * false without taking any if one of them has too few left.
   */
  readonly spend: (
    request: FastifyRequest,
    reply: FastifyReply,
    account: string | undefined,
    points: number,
  ) => boolean;
}

/**
 * Limits the calls of each caller in a scope, including those without a route. Must be called after authentication has
 * been registered. Points are refilled at a constant rate. Answers have the fields `RateLimit-Policy`
 * (`"caller";q=<points>;w=<seconds until all are back>`) and `RateLimit` (`"caller";r=<points left>;t=<seconds until all are back>`) of
 * draft-ietf-httpapi-ratelimit-headers, followed by the same for `"account"` once an account has been charged. Calls
 * beyond a limit cause a Refusal 429 `rate_limited` with Retry-After.
 */
export function registerRateLimit(scope: FastifyInstance, { limits, onRefused }: Options): RateLimit {
  const chargeCaller = createCharge('caller', () => limits.perCaller, onRefused);
  const chargeAccount = createCharge('account', limits.ofAccount, onRefused);
  const costOf = ({ routeOptions }: FastifyRequest) => routeOptions.config.cost ?? 1;
  scope.addHook('onRequest', async (request, reply) =>
    chargeCaller.charge(reply, callerKey(identityOf(request)), costOf(request)),
  );
  return {
    chargeLookup: (request, reply) => chargeCaller.charge(reply, callerKey(identityOf(request)), LOOKUP_COST),
    chargeAccount: (request, reply, account) => chargeAccount.charge(reply, account, costOf(request)),
    spend(request, reply, account, points) {
      const caller = callerKey(identityOf(request));
      if (!chargeCaller.take(reply, caller, points)) return false;
      if (account === undefined || chargeAccount.take(reply, account, points)) return true;
      chargeCaller.give(reply, caller, points);
      return false;
    },
  };
}

interface Options {
  readonly limits: PointLimits;
  readonly onRefused: (limit: CallLimit) => void;
}

function createCharge(
  name: CallLimit,
  perMinute: (key: string) => number | undefined,
  onRefused: Options['onRefused'],
) {
  const quota = (key: string): Quota | undefined => {
    const points = perMinute(key);
    return points === undefined ? undefined : quotaOf(name, points);
  };
  const buckets = createTokenBuckets({
    capacity: key => quota(key)?.points ?? Number.POSITIVE_INFINITY,
    refillMs: key => (quota(key)?.windowSeconds ?? 1) * 1_000,
    entries: ENTRIES,
    nowMs: () => performance.now(),
  });
  const charge = (reply: FastifyReply, key: string, cost: number) => {
    const limit = quota(key);
    if (limit === undefined) return;
    const taken = buckets.take(key, cost);
    const state = buckets.stateOf(key, cost);
    putItem(reply, 'ratelimit-policy', name, policyItem(limit));
    putItem(reply, 'ratelimit', name, limitItem(limit, state));
    if (taken) return;
    onRefused(name);
    const detail = detailOfLimit('call', cost, limit, state);
    throw new Refusal('rate_limited', { detail, headers: { 'retry-after': `${state.retryInSeconds}` } });
  };
  const show = (reply: FastifyReply, key: string, limit: Quota): void =>
    putItem(reply, 'ratelimit', name, limitItem(limit, buckets.stateOf(key, 1)));
  /** Takes points, or returns false. */
  const take = (reply: FastifyReply, key: string, cost: number): boolean => {
    const limit = quota(key);
    if (limit === undefined) return true;
    const taken = buckets.take(key, cost);
    show(reply, key, limit);
    return taken;
  };
  const give = (reply: FastifyReply, key: string, cost: number): void => {
    const limit = quota(key);
    if (limit === undefined) return;
    buckets.give(key, cost);
    show(reply, key, limit);
  };
  return { charge, take, give };
}

/** Adds the item of a limit to a field that is a list, or replaces it. */
function putItem(reply: FastifyReply, field: string, name: CallLimit, item: string): void {
  const before = reply.getHeader(field);
  const items = typeof before === 'string' ? before.split(', ') : [];
  const at = items.findIndex(each => each.startsWith(`"${name}";`));
  reply.header(field, (at < 0 ? [...items, item] : items.with(at, item)).join(', '));
}
