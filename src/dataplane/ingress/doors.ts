import type { IncomingMessage } from 'node:http';
import type { ClientAddress } from '../../http/client-address.ts';
import { detailOfLimit, limitItem, policyItem, type Quota } from '../../http/rate-limit-fields.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';

/** Limits of ingress. Refused requests are counted by limit. */
export const DOOR_LIMITS = ['address', 'key', 'workspace'] as const;
export type DoorLimit = (typeof DOOR_LIMITS)[number];

/** Requests per second, each with a point. 0 means no limit. */
export interface DoorRates {
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
 * Doors limit how many requests are let in. All functions take points and return undefined, or return the facts of a 429
 * `rate_limited`. They don't allocate for addresses, keys, and workspaces that are in memory.
 */
export interface Doors {
  /** Takes a point of the client's address. */
  readonly passAddress: (request: IncomingMessage) => RefusalFacts | undefined;
  /** Same as `passAddress`, but takes the points for looking up a key. */
  readonly passLookup: (request: IncomingMessage) => RefusalFacts | undefined;
  /** Returns the points of a lookup except for one. */
  readonly giveBackLookup: (request: IncomingMessage) => void;
  /** Takes a point of a valid key, and one of its workspace. `key` identifies the key in all workspaces. */
  readonly passSender: (key: string, workspace: string) => RefusalFacts | undefined;
  /** Returns doors for other requests with the same keys: only the points of addresses are shared. */
  readonly withOwnSenders: () => Doors;
}

interface DoorOptions {
  readonly rates: DoorRates;
  /** If undefined, there is no limit by address. */
  readonly addressOf: ClientAddress | undefined;
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number;
  readonly onRefused: (limit: DoorLimit) => void;
}

/** Creates doors with answers in the form of the facade: `RateLimit`, `RateLimit-Policy`, and `Retry-After`. */
export function createDoors(options: DoorOptions): Doors {
  const { rates, addressOf } = options;
  const addresses = addressOf && createDoor('address', rates.perAddress, options);
  const pass = (request: IncomingMessage, cost: number) =>
    addressOf === undefined ? undefined : addresses?.pass(addressOf(request), cost);

  function besideAddresses(): Doors {
    const keys = createDoor('key', rates.perKey, options);
    const workspaces = createDoor('workspace', rates.perWorkspace, options);
    return {
      passAddress: request => pass(request, 1),
      passLookup: request => pass(request, LOOKUP_POINTS),
      giveBackLookup(request) {
        if (addressOf !== undefined) addresses?.giveBack(addressOf(request), LOOKUP_POINTS);
      },
      passSender: (key, workspace) => keys?.pass(key, 1) ?? workspaces?.pass(workspace, 1),
      withOwnSenders: besideAddresses,
    };
  }

  return besideAddresses();
}

/** Creates the buckets of a limit, or returns undefined if there is none. */
function createDoor(name: DoorLimit, points: number, { nowMs, onRefused }: DoorOptions) {
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
