import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientAddress } from '../../http/client-address.ts';
import { answerPlainly } from '../../http/problem-answers.ts';
import { detailOfLimit, limitItem, policyItem } from '../../http/rate-limit-fields.ts';
import { createOccupancy } from '../../time/occupancy.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';
import { type CallLimit, ENTRIES, type PointLimits, quotaOf } from './rate-limit.ts';

/**
 * Creates the function that limits the calls of each address regardless of their path. It limits both the number of
 * calls and the number of concurrent calls. Returns false if it has responded with 429 `rate_limited`.
 *
 * Calls are processed in the order of arrival, so calls of other addresses have to wait for all earlier calls of an
 * address. It must therefore come before the framework: a refused call then takes a small part of the time of any
 * other. Responses include the same fields as in `registerRateLimit`, which start with `"address"`.
 *
 * @param options.onAnswered called for each refused call, in addition to `onRefused`
 */
export function createAddressLimit(options: {
  readonly addressOf: ClientAddress;
  readonly limits: Pick<PointLimits, 'perAddress' | 'inProgress'>;
  readonly onRefused: (limit: CallLimit) => void;
  readonly onAnswered: () => void;
  readonly isDraining: () => boolean;
}): (request: IncomingMessage, response: ServerResponse) => boolean {
  const { addressOf, limits, onRefused, onAnswered, isDraining } = options;
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

  function refuse(response: ServerResponse, limit: CallLimit, detail: string, retryInSeconds: number): false {
    onRefused(limit);
    onAnswered();
    const headers = {
      'retry-after': `${retryInSeconds}`,
      'x-request-id': randomUUID(),
      'x-content-type-options': 'nosniff',
      ...(isDraining() ? { connection: 'close' } : {}),
    };
    answerPlainly(response, 'rate_limited', { detail, headers });
    return false;
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
    return true;
  };
}
