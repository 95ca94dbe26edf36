import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientAddress } from '../../http/client-address.ts';
import { detailOfLimit, limitItem, policyItem } from '../../http/rate-limit-fields.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import { createOccupancy } from '../../time/occupancy.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';
import { type CallLimit, ENTRIES, type PointLimits, quotaOf } from './rate-limit.ts';

/** Responds to a refused call. */
export type Refuse = () => void;

/**
 * Creates the function that limits the calls of each address regardless of their path. The function limits both the
 * number of calls and the number of concurrent calls. If a call is beyond a limit, it returns the function that
 * responds with 429 `rate_limited`.
 *
 * The function must come before the framework: a refused call then takes a small part of the time of any other.
 * Responses include the same fields as in `registerRateLimit`, which start with `"address"`.
 *
 * @param options.answer responds with 429
 */
export function createAddressLimit(options: {
  readonly addressOf: ClientAddress;
  readonly limits: Pick<PointLimits, 'perAddress' | 'inProgress'>;
  readonly onRefused: (limit: CallLimit) => void;
  readonly answer: (response: ServerResponse, facts: RefusalFacts) => void;
}): (request: IncomingMessage, response: ServerResponse) => Refuse | undefined {
  const { addressOf, limits, onRefused, answer } = options;
  const quota = quotaOf('address', limits.perAddress);
  const policy = policyItem(quota);
  const buckets = createTokenBuckets({
    capacity: quota.points,
    refillMs: quota.windowSeconds * 1_000,
    entries: ENTRIES,
    nowMs: () => performance.now(),
  });
  const calls = createOccupancy(limits.inProgress);
  const full = `${limits.inProgress} calls from your address are in progress, which is the limit. Wait until some of these calls have been answered.`;

  function refuse(response: ServerResponse, limit: CallLimit, detail: string, retryInSeconds: number): Refuse {
    onRefused(limit);
    return () => answer(response, { detail, headers: { 'retry-after': `${retryInSeconds}` } });
  }

  return (request, response) => {
    const address = addressOf(request);
    const taken = buckets.take(address, 1);
    const state = buckets.stateOf(address, 1);
    response.setHeader('ratelimit-policy', policy);
    response.setHeader('ratelimit', limitItem(quota, state));
    if (!taken) {
      return refuse(response, 'address', detailOfLimit('call', 1, quota, state), state.retryInSeconds);
    }
    if (!calls.enter(address)) return refuse(response, 'concurrency', full, 1);
    response.once('close', () => calls.leave(address));
    return undefined;
  };
}
