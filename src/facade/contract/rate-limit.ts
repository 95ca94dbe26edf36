import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { publicId } from '../../core/ids/ids.ts';
import { remedyOfLimit } from '../../core/problems/limit-remedy.ts';
import { detailOfLimit, limitItem, policyItem, type Quota } from '../../http/rate-limit-fields.ts';
import { Refusal } from '../../http/refusal.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';
import { callerKey, identityOf } from '../auth/identity.ts';
import type { AdditionalPoints, CallCost } from './route.ts';

/**
 * The number of seconds whose points can be used in a single burst. If a burst could use the points of a whole minute,
 * it would affect other callers.
 */
const BURST_SECONDS = 10;
/** The minimum burst size unless a minute has fewer points. Tools send their calls in bursts. */
const BURST_POINTS = 1_000;
/** The number of callers, accounts, and addresses whose buckets are kept in memory. */
export const ENTRIES = 10_000;

/** The facade limits. Refused calls are counted by limit. */
export const CALL_LIMITS = ['address', 'caller', 'account', 'concurrency', 'store', 'turn'] as const;
export type CallLimit = (typeof CALL_LIMITS)[number];

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The number of points charged for a call of the route. Defaults to 1. The same applies to paths without a route.
     */
    readonly cost?: CallCost;
  }
}

/**
 * Returns the quota for a limit of points per minute. The bucket holds the points of 10 s or 1,000 points (whichever is
 * more), but never more than the points of one minute. The number of points can be fractional.
 */
export function quotaOf(name: CallLimit, perMinute: number): Quota {
  const windowSeconds = Math.min(60, Math.max(BURST_SECONDS, Math.ceil((60 * BURST_POINTS) / perMinute)));
  return { name, points: (perMinute * windowSeconds) / 60, windowSeconds };
}

/** Points per minute on this replica. */
export interface PointLimits {
  /** Each call costs 1 of these points because they only cover the steps before the caller is known. */
  readonly perAddress: number;
  readonly perCaller: number;
  /**
   * Shared by all callers of an account regardless of the workspace. Undefined for accounts without a limit. A change
   * applies from the next call.
   */
  readonly ofAccount: (account: string) => number | undefined;
  /** The highest limit that an account can have. Undefined if there is none. */
  readonly accountCeiling: () => number | undefined;
  /** The number of concurrent calls of an address. In this case, a call holds one point until it ends. */
  readonly inProgress: number;
}

/**
 * The number of points charged for looking up an id on the API server because the id is unknown or belongs to another
 * user. Looking up a guessed id is much more expensive for the API server than a response from the caches.
 */
const LOOKUP_COST = 20;

/** The number of bytes of a body for which at least one point is charged. */
export const BYTES_PER_POINT = 131_072;

/**
 * Returns the points of a call: those of its route, but at least one for every `BYTES_PER_POINT` of its body. The
 * points are charged before the body is read, so a body without a Content-Length costs as much as the largest one.
 */
function costOf({ headers, routeOptions }: FastifyRequest): number {
  const { bodyLimit, config } = routeOptions;
  const bytes = Number(headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : bodyLimit));
  return Math.max(config.cost ?? 1, Math.ceil(Math.min(bytes, bodyLimit) / BYTES_PER_POINT));
}

export interface RateLimit {
  /**
   * Charges the points for looking up an id on the API server to the caller.
   *
   * @throws Refusal 429 `rate_limited` if the caller doesn't have enough points
   */
  readonly chargeLookup: (request: FastifyRequest, reply: FastifyReply) => void;
  /**
   * Charges the points of the call to the account as well. Must only be called after checking the caller's access so
   * that it is not possible to use up the points of other accounts.
   *
   * @throws Refusal 429 `rate_limited` if the account doesn't have enough points
   */
  readonly chargeAccount: (request: FastifyRequest, reply: FastifyReply, account: string) => void;
  /**
   * Charges additional points to the caller and the account, for calls that do more than included in their cost.
   * Returns false without charging any points if one of them doesn't have enough points.
   */
  readonly spend: (
    request: FastifyRequest,
    reply: FastifyReply,
    account: string | undefined,
    points: number,
  ) => boolean;
  /**
   * Charges additional points to the caller and the account, for calls that can't do anything without them. A call
   * never costs more points than the caller or the account can have.
   *
   * @throws Refusal 429 `rate_limited` if one of them doesn't have enough points. Retry-After is the time until the
   *   whole call can be charged
   */
  readonly chargeMore: (
    request: FastifyRequest,
    reply: FastifyReply,
    account: string | undefined,
    more: AdditionalPoints,
  ) => void;
}

/**
 * Limits the calls of each caller in a scope, including calls without a route. Must be called after authentication has
 * been registered. Points are added back at a constant rate. Responses include the fields `RateLimit-Policy`
 * (`"caller";q=<points>;w=<seconds until all are back>`) and `RateLimit`
 * (`"caller";r=<points left>;t=<seconds until all are back>`) of draft-ietf-httpapi-ratelimit-headers, followed by the
 * same fields for `"account"` after an account has been charged. Calls beyond a limit cause a Refusal 429
 * `rate_limited` with Retry-After.
 */
export function registerRateLimit(scope: FastifyInstance, options: Options): RateLimit {
  const { limits } = options;
  const chargeCaller = createCharge(
    'caller',
    () => limits.perCaller,
    () => '',
    options,
  );
  const chargeAccount = createCharge('account', limits.ofAccount, account => remedyOf(account, limits), options);
  scope.addHook('onRequest', async (request, reply) =>
    chargeCaller.charge(reply, callerKey(identityOf(request)), costOf(request)),
  );
  /** Takes points of a call that has already been charged `base` points. Returns the limit that doesn't have enough. */
  function take(
    request: FastifyRequest,
    reply: FastifyReply,
    account: string | undefined,
    points: number,
    base: number,
  ): 'caller' | 'account' | undefined {
    const caller = callerKey(identityOf(request));
    if (!chargeCaller.take(reply, caller, points, base)) return 'caller';
    if (account === undefined || chargeAccount.take(reply, account, points, base)) return undefined;
    chargeCaller.give(reply, caller, points, base);
    return 'account';
  }
  return {
    chargeLookup: (request, reply) => chargeCaller.charge(reply, callerKey(identityOf(request)), LOOKUP_COST),
    chargeAccount: (request, reply, account) => chargeAccount.charge(reply, account, costOf(request)),
    spend: (request, reply, account, points) => take(request, reply, account, points, 0) === undefined,
    chargeMore(request, reply, account, { points, what, remedy = '' }) {
      const base = costOf(request);
      const missing = take(request, reply, account, points, base);
      if (missing === undefined) return;
      options.onRefused(missing);
      // When it is repeated, the whole call is charged again.
      const ofCaller = chargeCaller.secondsUntil(callerKey(identityOf(request)), base + points);
      const ofAccount = account === undefined ? 0 : chargeAccount.secondsUntil(account, base + points);
      throw new Refusal('rate_limited', {
        detail:
          `${what} costs ${points} more points, and you don't have enough points left. Wait for the number of seconds in Retry-After and then retry. ${remedy}`.trimEnd(),
        headers: { 'retry-after': `${Math.max(ofCaller, ofAccount)}` },
      });
    },
  };
}

/** Returns the sentences about the limit of an account and who can raise it. */
function remedyOf(name: string, { ofAccount, accountCeiling }: PointLimits): string {
  const [account, most] = [publicId('Account', '', name), ofAccount(name)];
  const remedy = remedyOfLimit('requestsPerMinute', { account, most, ceiling: accountCeiling() });
  return `The limit requestsPerMinute of account ${account} is ${most}. ${remedy}`;
}

interface Options {
  readonly limits: PointLimits;
  readonly onRefused: (limit: CallLimit) => void;
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number;
}

function createCharge(
  name: CallLimit,
  perMinute: (key: string) => number | undefined,
  remedy: (key: string) => string,
  { onRefused, nowMs }: Options,
) {
  const quota = (key: string): Quota | undefined => {
    const points = perMinute(key);
    return points === undefined ? undefined : quotaOf(name, points);
  };
  const buckets = createTokenBuckets({
    capacity: key => quota(key)?.points ?? Number.POSITIVE_INFINITY,
    refillMs: key => (quota(key)?.windowSeconds ?? 1) * 1_000,
    entries: ENTRIES,
    nowMs,
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
    const detail = detailOfLimit('call', cost, limit, state, remedy(key));
    throw new Refusal('rate_limited', { detail, headers: { 'retry-after': `${state.retryInSeconds}` } });
  };
  const show = (reply: FastifyReply, key: string, limit: Quota): void =>
    putItem(reply, 'ratelimit', name, limitItem(limit, buckets.stateOf(key, 1)));
  /** Takes the points or returns false. If the call has been charged `base` points, both never exceed the capacity. */
  const take = (reply: FastifyReply, key: string, cost: number, base: number): boolean => {
    const limit = quota(key);
    if (limit === undefined) return true;
    const taken = buckets.take(key, Math.min(cost, limit.points - base));
    show(reply, key, limit);
    return taken;
  };
  const give = (reply: FastifyReply, key: string, cost: number, base: number): void => {
    const limit = quota(key);
    if (limit === undefined) return;
    buckets.give(key, Math.min(cost, limit.points - base));
    show(reply, key, limit);
  };
  const secondsUntil = (key: string, cost: number): number =>
    quota(key) === undefined ? 0 : buckets.stateOf(key, cost).retryInSeconds;
  return { charge, take, give, secondsUntil };
}

/** Adds or replaces the item of a limit in a list field. */
function putItem(reply: FastifyReply, field: string, name: CallLimit, item: string): void {
  const before = reply.getHeader(field);
  const items = typeof before === 'string' ? before.split(', ') : [];
  const at = items.findIndex(each => each.startsWith(`"${name}";`));
  reply.header(field, (at < 0 ? [...items, item] : items.with(at, item)).join(', '));
}
