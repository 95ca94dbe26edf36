import type { KindName } from '../../api/kinds/kinds.ts';
import { COUNTED, COUNTED_KINDS, type CountedLimit, isInUse, mostStored } from '../../core/limits/counted-limits.ts';
import { countByAccount } from '../../kube/account-counts.ts';
import { keyOf, type ObjectName } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Caches } from './caches.ts';

/** An object which is being created, and is not in the cache yet. */
interface Pending {
  readonly account: string;
  readonly limit: CountedLimit;
  readonly seen: PromiseWithResolvers<void>;
}

export interface Named {
  readonly kind: KindName;
  readonly name: ObjectName;
}

/** An object that is counted before it has been added to the cache. */
export interface Expected {
  /** Resolves when the object is in the cache, or is no longer counted. */
  readonly seen: Promise<void>;
  readonly settle: () => void;
}

export interface Counts {
  readonly used: number;
  readonly stored: number;
  readonly creating: number;
}

/** Returns how many more objects than those in the cache an account can have. */
export function roomWithin(limit: CountedLimit, most: number | undefined, { used, stored }: Counts): number {
  return most === undefined ? Number.POSITIVE_INFINITY : Math.min(most - used, mostStored(limit, most) - stored);
}

export type GuardCaches = Pick<Caches, 'get' | 'live' | 'reflector'>;

/** Counts the objects of accounts, including pending objects. */
export function createCounter(caches: GuardCaches) {
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
     * Returns the counts of cached objects using the limit, of all cached objects, and of objects being created by this
     * replica. The object itself is not counted, because the cache may not be aware of its deletion yet.
     */
    countWithout(account: string, limit: CountedLimit, { kind, name }: Named): Counts {
      const own = pendingKey(kind, keyOf(name));
      const cached = caches.get(kind, name);
      let creating = 0;
      for (const [key, each] of pending) {
        if (key !== own && each.account === account && each.limit === limit) creating++;
      }
      const used = counts.of(account, limit) - (cached !== undefined && isInUse(limit, cached) ? 1 : 0);
      const all = limit === 'activations' ? stored.of(account, limit) - (cached === undefined ? 0 : 1) : used;
      return { used, stored: all, creating };
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

export type ObjectCounter = ReturnType<typeof createCounter>;
