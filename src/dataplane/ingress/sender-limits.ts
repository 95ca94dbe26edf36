import type { IncomingMessage } from 'node:http';
import type { ClientAddress } from '../../http/client-address.ts';
import { detailOfLimit, limitItem, policyItem, type Quota } from '../../http/rate-limit-fields.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';

/** Limits of ingress. Refused requests are counted by limit. */
export const SENDER_LIMITS = ['address', 'key', 'workspace'] as const;
export type SenderLimit = (typeof SENDER_LIMITS)[number];

/** Requests per second, each with a point. 0 means no limit. */
export interface SenderRates {
  readonly perAddress: number;
  readonly perKey: number;
  readonly perWorkspace: number;
}

/**
 * Points for looking up a key in the store. They are given back if the key is valid. So of the points of an address, 1 %
 * are lookups of wrong keys, while its senders with known keys go on.
 */
const LOOKUP_POINTS = 100;
const WINDOW_SECONDS = 1;
/** Number of addresses, of keys, and of workspaces, whose buckets are kept in memory. */
const ENTRIES = 10_000;

/**
 * Limits the requests of each sender. Functions that take points return undefined, or the facts of a 429 `rate_limited` if
 * there are too few. They don't allocate for addresses, keys, and workspaces that are in memory.
 */
export interface SenderLimits {
  /** Takes a point of the client's address. */
  readonly takeForAddress: (request: IncomingMessage) => RefusalFacts | undefined;
  /** Same as `takeForAddress`, but takes the points for looking up a key. */
  readonly takeForLookup: (request: IncomingMessage) => RefusalFacts | undefined;
  /** Returns all points of a lookup except one. */
  readonly refundLookup: (request: IncomingMessage) => void;
  /** Takes a point of a valid key, and one of its workspace. `key` identifies the key in all workspaces. */
  readonly takeForSender: (key: string, workspace: string) => RefusalFacts | undefined;
  /** Returns limits for other requests with the same keys: only the points of addresses are shared. */
  readonly withOwnSenders: () => SenderLimits;
}

interface SenderLimitOptions {
  readonly rates: SenderRates;
  /** If undefined, there is no limit by address. */
  readonly addressOf: ClientAddress | undefined;
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number;
  readonly onRefused: (limit: SenderLimit) => void;
}

/** Creates the limits. Refusals have the same headers as those of the facade: `RateLimit`, `RateLimit-Policy`, and `Retry-After`. */
export function createSenderLimits(options: SenderLimitOptions): SenderLimits {
  const { rates, addressOf } = options;
  const addresses = addressOf && createLimit('address', rates.perAddress, options);
  const pass = (request: IncomingMessage, cost: number) =>
    addressOf === undefined ? undefined : addresses?.pass(addressOf(request), cost);

  function besideAddresses(): SenderLimits {
    const keys = createLimit('key', rates.perKey, options);
    const workspaces = createLimit('workspace', rates.perWorkspace, options);
    return {
      takeForAddress: request => pass(request, 1),
      takeForLookup: request => pass(request, LOOKUP_POINTS),
      refundLookup(request) {
        if (addressOf !== undefined) addresses?.giveBack(addressOf(request), LOOKUP_POINTS);
      },
      takeForSender: (key, workspace) => keys?.pass(key, 1) ?? workspaces?.pass(workspace, 1),
      withOwnSenders: besideAddresses,
    };
  }

  return besideAddresses();
}

/** Creates the buckets of a limit, or returns undefined if there is none. */
function createLimit(name: SenderLimit, points: number, { nowMs, onRefused }: SenderLimitOptions) {
  if (points === 0) return undefined;
  const quota: Quota = { name, points, windowSeconds: WINDOW_SECONDS };
  const refillMs = WINDOW_SECONDS * 1_000;
  const buckets = createTokenBuckets({ capacity: points, refillMs, entries: ENTRIES, nowMs });

  function refuse(key: string, cost: number): RefusalFacts {
    onRefused(name);
    const state = buckets.stateOf(key, cost);
    const headers = {
      'ratelimit-policy': policyItem(quota),
      ratelimit: limitItem(quota, state),
      'retry-after': `${state.retryInSeconds}`,
    };
    return { detail: detailOfLimit('request', cost, quota, state), headers };
  }

  return {
    pass: (key: string, cost: number) => (buckets.take(key, cost) ? undefined : refuse(key, cost)),
    /** Returns all points of a cost except for one. Costs above the limit have taken all points. */
    giveBack: (key: string, cost: number) => buckets.give(key, Math.min(cost, points) - 1),
  };
}
