import type { IncomingMessage } from 'node:http';
import { remedyOfLimit } from '../../core/problems/limit-remedy.ts';
import type { ClientAddress } from '../../http/client-address.ts';
import { detailOfLimit, limitItem, policyItem, type Quota } from '../../http/rate-limit-fields.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import { createRecentMap } from '../../time/recent-map.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';

/** The limits of ingress. Refused requests are counted by limit. */
export const SENDER_LIMITS = ['address', 'key', 'workspace', 'account'] as const;
export type SenderLimit = (typeof SENDER_LIMITS)[number];

/** Points per second, which are events of up to 16 KiB. 0 means no limit. */
export interface SenderRates {
  readonly perAddress: number;
  readonly perKey: number;
  readonly perWorkspace: number;
}

/**
 * Points for looking up a key in the store, at least one of which is for the event itself. The rest is given back if
 * the key is valid. So of the points of an address, 1 % are lookups of wrong keys, while its senders with known keys go
 * on.
 */
const LOOKUP_POINTS = 100;
const WINDOW_SECONDS = 1;
/**
 * The number of addresses, of keys, of workspaces, and of accounts with the same limit, whose buckets are kept in
 * memory.
 */
const ENTRIES = 10_000;
/** The number of different limits of accounts that are kept in memory. */
const ACCOUNT_LIMITS = 1_000;
/**
 * Returns the sentence about who can raise an account's limit. The installation's ceiling is not known here.
 */
const remedyOf = (account: string): string => remedyOfLimit('eventsPerSecond', { account });
/** Returns the details to send if an account may not publish any events. Nothing changes by itself. */
const noEvents = (account: string): RefusalFacts => ({
  detail: `The limit eventsPerSecond of account ${account} is 0. ${remedyOf(account)}`,
  headers: { 'retry-after': '60' },
});

/** Bytes of an event that cost a point. */
const POINT_BYTES = 16_384;

/**
 * Returns the points that an event costs, given the size of its body: one for each started 16 KiB, and at least one.
 */
export const pointsOf = (bytes: number): number => Math.max(1, Math.ceil(bytes / POINT_BYTES));

/**
 * Limits the requests of each sender. Functions that take points return undefined, or the details of a 429
 * `rate_limited` if there are too few. The functions allocate nothing for addresses, keys, and workspaces that are in
 * memory. Costs above a limit take all of its points. `taken` is the part of these points that the request has already
 * taken, 0 by default.
 */
export interface SenderLimits {
  /** Takes points of the client's address. */
  readonly takeForAddress: (request: IncomingMessage, points: number, taken?: number) => RefusalFacts | undefined;
  /** Same as `takeForAddress`, but also takes the points for looking up a key. */
  readonly takeForLookup: (request: IncomingMessage, points: number) => RefusalFacts | undefined;
  /** Returns the points of a lookup. */
  readonly refundLookup: (request: IncomingMessage, points: number) => void;
  /** Takes points of a valid key, and of its workspace. `key` identifies the key in all workspaces. */
  readonly takeForSender: (key: string, workspace: string, points: number, taken?: number) => RefusalFacts | undefined;
  /** Takes points of an account that has `perSecond` of them. Without this, there is no limit. */
  readonly takeForAccount: (
    account: string,
    perSecond: number | undefined,
    points: number,
    taken?: number,
  ) => RefusalFacts | undefined;
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

/**
 * Creates the limits. Refusals have the same headers as those of the facade: `RateLimit`, `RateLimit-Policy`, and
 * `Retry-After`.
 */
export function createSenderLimits(options: SenderLimitOptions): SenderLimits {
  const { rates, addressOf } = options;
  const addresses = addressOf && createLimit('address', rates.perAddress, options);
  const pass = (request: IncomingMessage, cost: number, taken?: number) =>
    addressOf === undefined ? undefined : addresses?.pass(addressOf(request), cost, taken);

  function besideAddresses(): SenderLimits {
    const keys = createLimit('key', rates.perKey, options);
    const workspaces = createLimit('workspace', rates.perWorkspace, options);
    const accounts = createRecentMap<NonNullable<ReturnType<typeof createLimit>>>(ACCOUNT_LIMITS);

    /** Accounts have different limits. One whose limit has changed has all of its points. */
    function takeForAccount(
      account: string,
      perSecond: number | undefined,
      points: number,
      taken?: number,
    ): RefusalFacts | undefined {
      if (perSecond === undefined) return undefined;
      let limit = accounts.get(perSecond.toString());
      if (limit === undefined) {
        limit = createLimit('account', perSecond, options);
        if (limit === undefined) {
          options.onRefused('account');
          return noEvents(account);
        }
        accounts.set(perSecond.toString(), limit);
      }
      return limit.pass(account, points, taken);
    }

    return {
      takeForAddress: pass,
      takeForLookup: (request, points) => pass(request, Math.max(LOOKUP_POINTS, points)),
      refundLookup(request, points) {
        if (addressOf !== undefined) addresses?.giveBack(addressOf(request), LOOKUP_POINTS, points);
      },
      takeForSender: (key, workspace, points, taken) =>
        keys?.pass(key, points, taken) ?? workspaces?.pass(workspace, points, taken),
      takeForAccount,
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
    const remedy = name === 'account' ? remedyOf(key) : '';
    return { detail: detailOfLimit('request', cost, quota, state, remedy), headers };
  }

  return {
    pass: (key: string, cost: number, taken = 0) =>
      buckets.take(key, Math.max(0, Math.min(cost, points) - taken)) ? undefined : refuse(key, cost),
    /** Returns all points of a cost except for those that are kept. Costs above the limit have taken all points. */
    giveBack: (key: string, cost: number, kept: number) =>
      buckets.give(key, Math.max(0, Math.min(cost, points) - Math.min(kept, points))),
  };
}
