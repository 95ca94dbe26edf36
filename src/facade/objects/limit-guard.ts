import type { KindName } from '../../api/kinds/kinds.ts';
import { publicId } from '../../core/ids/ids.ts';
import {
  COUNTED,
  COUNTED_KINDS,
  type CountedLimit,
  isInUse,
  limitForNew,
  mostStored,
  type NewObject,
} from '../../core/limits/counted-limits.ts';
import { createLimitsOf, type LimitPolicy, type Limits } from '../../core/limits/limits.ts';
import { remedyOfLimit } from '../../core/problems/limit-remedy.ts';
import { Refusal } from '../../http/refusal.ts';
import { countByAccount } from '../../kube/account-counts.ts';
import { keyOf, type ObjectName } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Clock } from '../../time/clock.ts';
import { createLocks } from '../../time/locks.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';

/** LimitGuard compares the usage of an account to its limits. */
export interface LimitGuard {
  /** Returns the limits in force for an account. */
  readonly of: (account: Pick<Cached<'Account'>, 'spec'>) => Limits;
  /** Returns the points per minute of an account. Undefined if there is no such limit. */
  readonly pointsPerMinuteOf: (account: string) => number | undefined;
  /**
   * Returns the number of objects in all workspaces of an account that use the limit, according to the caches. Revoked
   * Activations don't.
   */
  readonly countOf: (account: string, limit: CountedLimit) => number;
  /**
   * Creates an object, or changes an object so that it uses its limit, unless the account has reached this limit.
   * Objects being created by this replica are counted as well, but not objects being created by other replicas. For
   * this reason, each replica only creates some of the remaining objects at the same time, and the last ones
   * sequentially. With up to four replicas, each additional replica can exceed the limit by one object.
   *
   * @throws Refusal 409 `limit_reached`; 503 `overloaded` if too many objects of the account are being created
   */
  readonly create: <T>(kind: KindName, name: ObjectName, spec: object, create: () => Promise<T>) => Promise<T>;
}

/**
 * A replica creates at most one out of this number of remaining objects at the same time. All others are left for the
 * objects that other replicas are creating. If only few are left, it creates a single object, and the next one when its
 * cache contains this object, along with all objects that other replicas have created before.
 */
const LEFT_FOR_EACH = 16;
/** The maximum number of objects of an account that are being created at the same time. */
const MOST_AT_ONCE = 64;
/** The maximum time in milliseconds for a created object to appear in the cache. */
const SEEN_WITHIN_MS = 2_000;

/** The maximum time in milliseconds that a call waits for other objects of its account to be created. */
const WAIT_MS = 5_000;

/** An object which is being created and is not in the cache yet. */
interface Pending {
  readonly account: string;
  readonly limit: CountedLimit;
  readonly seen: PromiseWithResolvers<void>;
}

interface Named {
  readonly kind: KindName;
  readonly name: ObjectName;
}

/** An object that is counted before it has been added to the cache. */
interface Expected {
  /** Resolves when the object is in the cache or is no longer counted. */
  readonly seen: Promise<void>;
  readonly settle: () => void;
}

/** An account with the default plan. */
const NEW_ACCOUNT: Pick<Cached<'Account'>, 'spec'> = { spec: { plan: 'Free', includedTokens: 0, owners: [] } };

type GuardCaches = Pick<Caches, 'get' | 'live' | 'reflector'>;

/** Returns the number of objects that a replica can create at the same time if this number of objects is left. */
function mostAtOnce(left: number): number {
  return left === Infinity ? left : Math.min(MOST_AT_ONCE, Math.max(1, Math.floor(left / LEFT_FOR_EACH)));
}

/** Counts the objects of accounts, including pending objects. */
function createCounter(caches: GuardCaches) {
  const pending = new Map<string, Pending>();
  const pendingKey = (kind: KindName, key: string) => `${kind}/${key}`;
  const reflectors = Object.fromEntries(COUNTED_KINDS.map(kind => [COUNTED[kind], caches.reflector(kind)]));
  const all = reflectors as Record<CountedLimit, Reflector<unknown>>;
  const counts = countByAccount(all, caches.reflector('Workspace'), { isCounted: isInUse });
  const stored = countByAccount({ activations: all.activations }, caches.reflector('Workspace'));
  for (const kind of COUNTED_KINDS) {
    caches.reflector(kind).subscribe((change, key, _old, current) => {
      if (change !== 'deleted' && isInUse(COUNTED[kind], current)) settle(pendingKey(kind, key));
    });
  }

  function settle(key: string): void {
    pending.get(key)?.seen.resolve();
    pending.delete(key);
  }

  /** Returns the pending objects of an account except for the object with the `own` key. */
  function pendingBeside(account: string, limit: CountedLimit, own: string): Pending[] {
    const beside: Pending[] = [];
    for (const [key, each] of pending) {
      if (key !== own && each.account === account && each.limit === limit) beside.push(each);
    }
    return beside;
  }

  return {
    countOf: counts.of,
    /**
     * Returns the counts of objects using the limit and of all objects, without the object itself, because the cache
     * may not be aware of its deletion yet. `creating` contains the objects that are not in the cache yet.
     */
    countWithout(account: string, limit: CountedLimit, { kind, name }: Named) {
      const cached = caches.get(kind, name);
      const creating = pendingBeside(account, limit, pendingKey(kind, keyOf(name)));
      const used = counts.of(account, limit) - (cached !== undefined && isInUse(limit, cached) ? 1 : 0);
      const all = limit === 'activations' ? stored.of(account, limit) - (cached === undefined ? 0 : 1) : used;
      return { used: used + creating.length, stored: all + creating.length, creating };
    },
    /** Counts an object until it has been added to the cache, or until `settle` is called. */
    expect(account: string, limit: CountedLimit, { kind, name }: Named): Expected {
      const key = pendingKey(kind, keyOf(name));
      const own: Pending = { account, limit, seen: Promise.withResolvers<void>() };
      // Another call may be creating the same object, and is no longer the one to wait for.
      settle(key);
      pending.set(key, own);
      return {
        seen: own.seen.promise,
        settle() {
          own.seen.resolve();
          if (pending.get(key) === own) pending.delete(key);
        },
      };
    },
  };
}

/** Returns true if a call was rejected because of a limit. */
export function isLimit(error: unknown): boolean {
  return error instanceof Refusal && error.code === 'limit_reached';
}

function limitReached(facts: {
  readonly account: string;
  readonly limit: CountedLimit;
  readonly most: number;
  readonly used: number;
  readonly stored: number;
  readonly ceiling: number | undefined;
}): Refusal {
  const { account, limit, most, used, stored, ceiling } = facts;
  const count =
    used < most
      ? `${stored} ${limit}, including revoked ones, which are kept for 30 days, in all of its workspaces together. It can have ${mostStored(limit, most)}, twice its limit.`
      : `${used} ${limit} in all of its workspaces together. Its limit is ${most}.`;
  const use = `The account ${publicId('Account', '', account)} has ${count} Nothing was changed.`;
  return new Refusal('limit_reached', `${use} ${remedyOfLimit(limit, { most, ceiling })}`);
}

function tooManyAtOnce(account: string, limit: CountedLimit): Refusal {
  const id = publicId('Account', '', account);
  return new Refusal('overloaded', `Too many ${limit} of the account ${id} are being created. Nothing was changed.`);
}

/** Returns the account of the workspace with this namespace. */
async function accountOf(caches: GuardCaches, namespace: string): Promise<string | undefined> {
  const name = { name: namespace };
  const workspace = caches.get('Workspace', name) ?? (await caches.live('Workspace', name));
  return workspace?.spec.account;
}

export function createLimitGuard(deps: {
  readonly caches: GuardCaches;
  readonly policy: LimitPolicy;
  readonly clock: Clock;
}): LimitGuard {
  const { caches, policy, clock } = deps;
  const counter = createCounter(caches);
  const locks = createLocks();
  const of = createLimitsOf(policy);

  /**
   * Starts counting the object, or returns the objects that have to be in the cache first. Since the limit may just
   * have been raised, the account is read from the API server before rejecting a call.
   */
  async function reserve(account: string, limit: CountedLimit, object: Named) {
    // Checks and counts in a single step so that no other call can intervene.
    const attempt = (found: Cached<'Account'> | undefined): Expected | readonly Pending[] | Refusal => {
      const most = found === undefined ? undefined : of(found)[limit];
      const { used, stored, creating } = counter.countWithout(account, limit, object);
      const left = most === undefined ? Infinity : Math.min(most - used, mostStored(limit, most) - stored);
      if (left <= 0) {
        const ceiling = policy.ceilings[limit];
        return limitReached({ account, limit, most: most ?? 0, used, stored, ceiling });
      }
      return creating.length < mostAtOnce(left) ? counter.expect(account, limit, object) : creating;
    };
    const cached = caches.get('Account', { name: account });
    const first = cached === undefined ? undefined : attempt(cached);
    if (first !== undefined && !(first instanceof Refusal)) return first;
    const second = attempt(await caches.live('Account', { name: account }));
    if (second instanceof Refusal) throw second;
    return second;
  }

  /** Starts counting the object as soon as few enough other objects are being created, in the order of the calls. */
  async function reserveInTurn(untilMs: number, account: string, limit: CountedLimit, object: Named) {
    while (clock.nowMs() < untilMs) {
      const reserved = await reserve(account, limit, object);
      if ('settle' in reserved) return reserved;
      await Promise.race(reserved.map(({ seen }) => seen.promise));
    }
    throw tooManyAtOnce(account, limit);
  }

  return {
    of,
    countOf: counter.countOf,
    // A new account may not be in the cache yet.
    pointsPerMinuteOf: account => of(caches.get('Account', { name: account }) ?? NEW_ACCOUNT).requestsPerMinute,
    async create(kind, name, spec, create) {
      const limit = limitForNew(kind, spec as NewObject);
      const account = limit === undefined ? undefined : await accountOf(caches, name.namespace ?? '');
      if (limit === undefined || account === undefined) return create();

      const object = { kind, name };
      const untilMs = clock.nowMs() + WAIT_MS;
      const inTurn = () => reserveInTurn(untilMs, account, limit, object);
      const first = await reserve(account, limit, object);
      const expected = 'settle' in first ? first : await locks.exclusively(`${limit}/${account}`, inTurn);
      try {
        const made = await create();
        // An object that is never delivered by the watch must not be counted forever.
        const cancel = clock.setTimer(expected.settle, SEEN_WITHIN_MS);
        void expected.seen.then(cancel);
        return made;
      } catch (error) {
        expected.settle();
        throw error;
      }
    },
  };
}
