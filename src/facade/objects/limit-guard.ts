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
import { type LimitPolicy, type Limits, limitsOf } from '../../core/limits/limits.ts';
import { Refusal } from '../../http/refusal.ts';
import { countByAccount } from '../../kube/account-counts.ts';
import { keyOf, type ObjectName } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Clock } from '../../time/clock.ts';
import { createLocks } from '../../time/locks.ts';
import type { Cached } from './cached.ts';
import type { Caches } from './caches.ts';

/** LimitGuard compares the usage of an account to its limits. */
export interface LimitGuard {
  /** Returns the limits in force for an account. */
  readonly of: (account: Pick<Cached<'Account'>, 'spec'>) => Limits;
  /** Returns the points per minute of an account. Undefined if there is no such limit. */
  readonly pointsPerMinuteOf: (account: string) => number | undefined;
  /**
   * Returns how many objects in all workspaces of an account use the limit, according to the caches. Revoked
   * Activations don't.
   */
  readonly countOf: (account: string, limit: CountedLimit) => number;
  /**
   * Creates an object, or changes an object so that it uses its limit, unless the account has reached this limit.
   * Objects being created by this replica are counted as well, but not objects being created by other replicas. With 32
   * or fewer objects left, each replica creates one object at a time. With more objects left, each of the other
   * replicas may add up to this number of objects at the same time.
   *
   * @throws Refusal 409 `limit_reached`
   */
  readonly create: <T>(kind: KindName, name: ObjectName, spec: object, create: () => Promise<T>) => Promise<T>;
}

/** If fewer objects are left, this replica creates the objects of an account sequentially. */
const FEW_LEFT = 32;
/** The maximum time in milliseconds for a created object to appear in the cache. */
const SEEN_WITHIN_MS = 2_000;

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

  return {
    countOf: counts.of,
    /**
     * Returns the counts of objects using the limit and of all objects, without the object itself, because the cache
     * may not be aware of its deletion yet.
     */
    countWithout(account: string, limit: CountedLimit, { kind, name }: Named): { used: number; stored: number } {
      const own = pendingKey(kind, keyOf(name));
      const cached = caches.get(kind, name);
      let creating = 0;
      for (const [key, each] of pending) {
        if (key !== own && each.account === account && each.limit === limit) creating++;
      }
      const used = counts.of(account, limit) - (cached !== undefined && isInUse(limit, cached) ? 1 : 0);
      const all = limit === 'activations' ? stored.of(account, limit) - (cached === undefined ? 0 : 1) : used;
      return { used: used + creating, stored: all + creating };
    },
    /** Counts an object until it has been added to the cache, or until `settle` is called. */
    expect(account: string, limit: CountedLimit, { kind, name }: Named): Expected {
      const key = pendingKey(kind, keyOf(name));
      const own: Pending = { account, limit, seen: Promise.withResolvers<void>() };
      pending.set(key, own);
      return {
        seen: own.seen.promise,
        settle() {
          own.seen.resolve();
          // Another call may be creating the same object.
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
      : `${used} ${limit} in all of its workspaces together, and its limit is ${most}.`;
  const use = `The account ${publicId('Account', '', account)} has ${count} Nothing was changed.`;
  const remedy =
    most === ceiling
      ? 'This is the highest limit of the installation (SLUICE_MAX_LIMITS), which only its operator can raise.'
      : `To raise it, ask the administrator to change spec.limits.${limit} of the Account.`;
  return new Refusal('limit_reached', `${use} ${remedy}`);
}

export function createLimitGuard(deps: {
  readonly caches: GuardCaches;
  readonly policy: LimitPolicy;
  readonly clock: Clock;
}): LimitGuard {
  const { caches, policy, clock } = deps;
  const counter = createCounter(caches);
  const locks = createLocks();
  const resolved = new WeakMap<object, Limits>();

  function of({ spec }: Pick<Cached<'Account'>, 'spec'>): Limits {
    let limits = resolved.get(spec);
    if (limits === undefined) resolved.set(spec, (limits = limitsOf(spec, policy)));
    return limits;
  }

  async function accountOf(namespace: string): Promise<string | undefined> {
    const workspace =
      caches.get('Workspace', { name: namespace }) ?? (await caches.live('Workspace', { name: namespace }));
    return workspace?.spec.account;
  }

  /**
   * Starts counting the object or returns undefined if only few objects are left and it isn't `alone`. Since the limit
   * may just have been raised, the account is read from the API server before rejecting a call.
   */
  async function reserve(account: string, limit: CountedLimit, object: Named, alone: boolean) {
    // Checks and counts in a single step so that no other call can intervene.
    const attempt = (found: Cached<'Account'> | undefined) => {
      const most = found === undefined ? undefined : of(found)[limit];
      const { used, stored } = counter.countWithout(account, limit, object);
      const left = most === undefined ? Infinity : Math.min(most - used, mostStored(limit, most) - stored);
      if (left <= 0) {
        const ceiling = policy.ceilings[limit];
        return limitReached({ account, limit, most: most ?? 0, used, stored, ceiling });
      }
      return left > FEW_LEFT || alone ? counter.expect(account, limit, object) : undefined;
    };
    const cached = caches.get('Account', { name: account });
    const first = cached === undefined ? undefined : attempt(cached);
    if (cached !== undefined && !isLimit(first)) return first as Expected | undefined;
    const second = attempt(await caches.live('Account', { name: account }));
    if (isLimit(second)) throw second;
    return second as Expected | undefined;
  }

  return {
    of,
    countOf: counter.countOf,
    // A new account may not be in the cache yet.
    pointsPerMinuteOf: account => of(caches.get('Account', { name: account }) ?? NEW_ACCOUNT).requestsPerMinute,
    async create(kind, name, spec, create) {
      const limit = limitForNew(kind, spec as NewObject);
      const account = limit === undefined ? undefined : await accountOf(name.namespace ?? '');
      if (limit === undefined || account === undefined) return create();

      const object = { kind, name };
      const finish = async (expected: Expected, untilSeen: boolean) => {
        try {
          const made = await create();
          // An object that is never delivered by the watch must not be counted forever.
          const cancel = clock.setTimer(expected.settle, SEEN_WITHIN_MS);
          void expected.seen.then(cancel);
          if (untilSeen) await expected.seen;
          return made;
        } catch (error) {
          expected.settle();
          throw error;
        }
      };
      const expected = await reserve(account, limit, object, false);
      if (expected !== undefined) return finish(expected, false);
      return locks.exclusively(`${limit}/${account}`, async () =>
        finish((await reserve(account, limit, object, true)) as Expected, true),
      );
    },
  };
}
