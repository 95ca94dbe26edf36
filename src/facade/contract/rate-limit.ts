import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../http/refusal.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';
import { callerKey, identityOf } from '../auth/identity.ts';
import type { CallCost } from './route.ts';

const WINDOW_SECONDS = 60;
/** Number of callers, and of accounts, whose buckets are kept in memory. */
const ENTRIES = 10_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Points that a call of the route costs. Defaults to 1, also for paths without a route. */
    readonly cost?: CallCost;
  }
}

/** Points per minute on this replica. */
export interface PointLimits {
  readonly perCaller: number;
  /** Shared by all callers of an account, whichever of its workspaces they call. */
  readonly perAccount: number;
}

export interface RateLimit {
  /**
   * Takes the points of the call from the account's bucket as well. Must not be called before the caller is known to
   * have access, so that nobody can use up the points of others.
   *
   * @throws Refusal 429 `rate_limited` if the account has too few points left
   */
  readonly chargeAccount: (request: FastifyRequest, reply: FastifyReply, account: string) => void;
}

/**
 * Limits the calls of each caller in a scope, including those without a route. Must be called after authentication has
 * been registered. Points come back evenly. Answers have the fields `RateLimit-Policy`
 * (`"caller";q=<points>;w=<seconds>`) and `RateLimit` (`"caller";r=<points left>;t=<seconds until all are back>`) of
 * draft-ietf-httpapi-ratelimit-headers, followed by the same for `"account"` once an account has been charged. Calls
 * beyond a limit cause a Refusal 429 `rate_limited` with Retry-After.
 */
export function registerRateLimit(scope: FastifyInstance, limits: PointLimits): RateLimit {
  const chargeCaller = createCharge('caller', limits.perCaller);
  const chargeAccount = createCharge('account', limits.perAccount);
  scope.addHook('onRequest', async (request, reply) => chargeCaller(request, reply, callerKey(identityOf(request))));
  return { chargeAccount };
}

function createCharge(name: 'caller' | 'account', capacity: number): RateLimit['chargeAccount'] {
  const options = { capacity, refillMs: WINDOW_SECONDS * 1_000, entries: ENTRIES, nowMs: () => performance.now() };
  const buckets = createTokenBuckets(options);
  const policy = `"${name}";q=${capacity};w=${WINDOW_SECONDS}`;
  return (request, reply, key) => {
    const { cost = 1 } = request.routeOptions.config;
    const taken = buckets.take(key, cost);
    const { left, fullInSeconds, retryInSeconds } = buckets.stateOf(key, cost);
    append(reply, 'ratelimit-policy', policy);
    append(reply, 'ratelimit', `"${name}";r=${left};t=${fullInSeconds}`);
    if (taken) return;
    const detail = `The call costs ${cost} of the ${capacity} points that the ${name} has in ${WINDOW_SECONDS} s, and ${left} are left. Wait for the number of seconds in Retry-After, and then retry.`;
    throw new Refusal('rate_limited', { detail, headers: { 'retry-after': `${retryInSeconds}` } });
  };
}

/** Adds an item to a field that is a list. */
function append(reply: FastifyReply, field: string, item: string): void {
  const before = reply.getHeader(field);
  reply.header(field, typeof before === 'string' ? `${before}, ${item}` : item);
}
