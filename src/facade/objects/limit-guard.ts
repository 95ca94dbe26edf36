import type { Creation, Creations } from '../../accounts/creations.ts';
import type { KindName } from '../../api/kinds/kinds.ts';
import { publicId } from '../../core/ids/ids.ts';
import {
  type CountedLimit,
  isInUse,
  limitForNew,
  mostStored,
  type NewObject,
} from '../../core/limits/counted-limits.ts';
import { type LimitPolicy, type Limits, limitsOf } from '../../core/limits/limits.ts';
import { Refusal } from '../../http/refusal.ts';
import { keyOf, type ObjectName } from '../../kube/object.ts';
import type { Clock } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';
import { createLocks } from '../../time/locks.ts';
import type { Cached } from './cached.ts';
import {
  type Counts,
  createCounter,
  type Expected,
  type GuardCaches,
  type Named,
  type ObjectCounter,
  roomWithin,
} from './object-counter.ts';

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
   * Creates an object, or changes an object so that it uses its limit unless the account has reached this limit.
   * Objects being created by this replica and by other replicas are counted as well, but while Redis is unavailable, only
   * those of this replica. With 32 or fewer objects left, each replica creates one object at a time.
   *
   * @throws Refusal 409 `limit_reached`
   */
  readonly create: <T>(kind: KindName, name: ObjectName, spec: object, create: () => Promise<T>) => Promise<T>;
}

/** If fewer objects are left, this replica creates the objects of an account sequentially. */
const FEW_LEFT = 32;
/** The maximum time in milliseconds for a created object to appear in the cache. */
const SEEN_WITHIN_MS = 2_000;

/** Codes of refusals after which the object may exist. */
const MAY_EXIST: readonly unknown[] = ['unavailable', 'changed_meanwhile'];

/** An account with the default plan. */
const NEW_ACCOUNT: Pick<Cached<'Account'>, 'spec'> = { spec: { plan: 'Free', includedTokens: 0, owners: [] } };

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

/** The maximum time in milliseconds that a call waits for Redis before it creates an object without it. */
const NOTE_WITHIN_MS = 1_000;

interface CountedDeps {
  readonly clock: Clock;
  readonly caches: GuardCaches;
  readonly creations: Creations;
  readonly counter: ObjectCounter;
  readonly limitsIn: LimitGuard['of'];
  readonly ceilings: LimitPolicy['ceilings'];
}

/** Counts objects that are about to be created: those of this replica, and those of all replicas. */
function createReservations({ clock, caches, creations, counter, limitsIn, ceilings }: CountedDeps) {
  const mostOf = (found: Cached<'Account'> | undefined, limit: CountedLimit) =>
    found === undefined ? undefined : limitsIn(found)[limit];

  /** @param creating number of objects that are counted, but not in the cache yet */
  function refusal(account: string, limit: CountedLimit, most: number | undefined, counts: Counts, creating: number) {
    const [used, stored] = [counts.used + creating, counts.stored + creating];
    return limitReached({ account, limit, most: most ?? 0, used, stored, ceiling: ceilings[limit] });
  }

  /** Returns an empty list while Redis does not respond, because this replica still counts its own objects. */
  const note = (creation: Creation, room: number) =>
    withDeadline(NOTE_WITHIN_MS, () => creations.begin(creation, room), clock).catch(() => []);

  /**
   * Counts the object for all replicas. Returns a function that undoes this.
   *
   * @throws Refusal 409 `limit_reached` if no objects are left because of the objects that other replicas are creating
   */
  async function share(account: string, limit: CountedLimit, object: Named): Promise<() => void> {
    const key = keyOf(object.name);
    const creation = { account: publicId('Account', '', account), limit, key };
    const roomOf = (found: Cached<'Account'> | undefined) =>
      roomWithin(limit, mostOf(found, limit), counter.countWithout(account, limit, object));
    const live = () => caches.live('Account', { name: account });
    const found = caches.get('Account', { name: account }) ?? (await live());
    const room = roomOf(found);
    const noted = room === Number.POSITIVE_INFINITY ? undefined : await note(creation, room);
    const cancel = () => void creations.cancel(creation);
    if (noted === undefined || noted.length === 0) return cancel;
    const isInCache = (other: string) => {
      const [namespace, name = ''] = other.split('/');
      const cached = caches.get(object.kind, { namespace, name });
      return cached !== undefined && isInUse(limit, cached);
    };
    const unseen = () => noted.filter(other => other === key || !isInCache(other)).length;
    if (unseen() <= roomOf(found)) return cancel;
    // The limit may just have been raised.
    const now = await live();
    if (unseen() <= roomOf(now)) return cancel;
    cancel();
    throw refusal(account, limit, mostOf(now, limit), counter.countWithout(account, limit, object), unseen() - 1);
  }

  /**
   * Starts counting the object or returns undefined if only few objects are left and it isn't `alone`. Since the limit
   * may just have been raised, the account is read from the API server before rejecting a call.
   */
  async function reserve(account: string, limit: CountedLimit, object: Named, alone: boolean) {
    // Checks and counts in a single step so that no other call can intervene.
    const attempt = (found: Cached<'Account'> | undefined) => {
      const most = mostOf(found, limit);
      const counts = counter.countWithout(account, limit, object);
      const left = roomWithin(limit, most, counts) - counts.creating;
      if (left <= 0) return refusal(account, limit, most, counts, counts.creating);
      return left > FEW_LEFT || alone ? counter.expect(account, limit, object) : undefined;
    };
    const cached = caches.get('Account', { name: account });
    const first = cached === undefined ? undefined : attempt(cached);
    if (cached !== undefined && !isLimit(first)) return first as Expected | undefined;
    const second = attempt(await caches.live('Account', { name: account }));
    if (isLimit(second)) throw second;
    return second as Expected | undefined;
  }

  return { share, reserve };
}

export function createLimitGuard(deps: {
  readonly caches: GuardCaches;
  readonly policy: LimitPolicy;
  readonly creations: Creations;
  readonly clock: Clock;
}): LimitGuard {
  const { caches, policy, creations, clock } = deps;
  const counter = createCounter(caches);
  const { share, reserve } = createReservations({
    clock,
    caches,
    creations,
    counter,
    limitsIn: of,
    ceilings: policy.ceilings,
  });
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
        let cancelShared = () => {};
        try {
          cancelShared = await share(account, limit, object);
          const made = await create();
          // An object that is never delivered by the watch must not be counted forever.
          const cancel = clock.setTimer(expected.settle, SEEN_WITHIN_MS);
          void expected.seen.then(cancel);
          if (untilSeen) await expected.seen;
          return made;
        } catch (error) {
          expected.settle();
          if (error instanceof Refusal && !MAY_EXIST.includes(error.code)) cancelShared();
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
