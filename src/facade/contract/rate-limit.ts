import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../http/refusal.ts';
import { callerKey, identityOf } from '../auth/identity.ts';

const WINDOW_SECONDS = 60;

/**
 * Limits the calls of each caller in a scope, including those without a route. Must be called after authentication has
 * been registered. Answers have the fields `RateLimit-Policy` (`"caller";q=<calls>;w=<seconds>`) and `RateLimit`
 * (`"caller";r=<calls left>;t=<seconds until the next window>`) of draft-ietf-httpapi-ratelimit-headers. Calls beyond
 * the limit cause a Refusal 429 `rate_limited` with Retry-After.
 */
export async function registerRateLimit(scope: FastifyInstance, callsPerMinute: number): Promise<void> {
  // The hooks of the plugin only know the fields of an older draft, so let it count, and write the fields here.
  await scope.register(rateLimit, { global: false });
  const count = scope.createRateLimit({
    max: callsPerMinute,
    timeWindow: WINDOW_SECONDS * 1_000,
    keyGenerator: request => {
      return callerKey(identityOf(request));
    },
  });
  const policy = `"caller";q=${callsPerMinute};w=${WINDOW_SECONDS}`;
  scope.addHook('onRequest', async (request, reply) => {
    const counted = await count(request);
    // Only for callers on an allow list, and there is none.
    if (counted.isAllowed) return;
    const { remaining, ttlInSeconds, isExceeded } = counted;
    reply.headers({ 'ratelimit-policy': policy, ratelimit: `"caller";r=${remaining};t=${ttlInSeconds}` });
    if (isExceeded) throw new Refusal('rate_limited', { headers: { 'retry-after': `${ttlInSeconds}` } });
  });
}
