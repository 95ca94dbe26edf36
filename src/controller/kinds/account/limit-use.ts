import { COUNTED, COUNTED_KINDS, type CountedLimit, isInUse } from '../../../core/limits/counted-limits.ts';
import { type LimitLevel, type LimitLevels, limitLevel } from '../../../core/limits/limit-levels.ts';
import { createLimitsOf, type LimitPolicy, type Limits } from '../../../core/limits/limits.ts';
import { countByAccount } from '../../../kube/account-counts.ts';
import type { Reflector } from '../../../kube/reflector.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import type { KeySource } from '../../engine/keyed-controller.ts';

type NamedAccount = Pick<Cached<'Account'>, 'spec'> & { readonly metadata: { readonly name: string } };

/** LimitUse compares the usage of each account to its limits. */
export interface LimitUse {
  /** Returns the limits in force for an account. */
  readonly limitsOf: (account: Pick<NamedAccount, 'spec'>) => Limits;
  /** Returns the limits that an account has reached or is close to. The source then reports any change. */
  readonly levelsOf: (account: NamedAccount) => LimitLevels;
  /** Returns the usage of an account as a fraction of each of its limits. Limits of 0 are not included. */
  readonly sharesOf: (account: NamedAccount) => ReadonlyMap<CountedLimit, number>;
  /** Returns the highest of these fractions, or 0 without any limits. */
  readonly highestShareOf: (account: NamedAccount) => number;
  /** Enqueues an account when the level of one of its limits changes, and not for every object. */
  readonly source: KeySource;
}

const LIMITS = COUNTED_KINDS.map(kind => COUNTED[kind]);

export function createLimitUse(caches: Caches, policy: LimitPolicy): LimitUse {
  /**
   * The level of each account and limit returned by the last call to `levelsOf`. Levels that are within the limit are
   * not included.
   */
  const levels = new Map<string, LimitLevel>();
  const listeners = new Set<(account: string) => void>();
  const levelKey = (account: string, limit: CountedLimit) => `${limit}/${account}`;
  const reflectors = Object.fromEntries(COUNTED_KINDS.map(kind => [COUNTED[kind], caches[kind]]));

  const counts = countByAccount(reflectors as Record<CountedLimit, Reflector<unknown>>, caches.Workspace, {
    isCounted: isInUse,
    onChange,
  });

  const limitsOf = createLimitsOf(policy);

  function onChange(account: string, limit: CountedLimit): void {
    const object = caches.Account.store.get(account);
    if (object === undefined || listeners.size === 0) return;
    const before = levels.get(levelKey(account, limit));
    const level = limitLevel(counts.of(account, limit), limitsOf(object)[limit], before);
    if (level !== (before ?? 'within')) for (const listener of listeners) listener(account);
  }

  /** Undefined if there is no limit, or if the limit is 0. */
  function shareOf(account: NamedAccount, limit: CountedLimit): number | undefined {
    const most = limitsOf(account)[limit];
    return most ? counts.of(account.metadata.name, limit) / most : undefined;
  }

  function sharesOf(account: NamedAccount): ReadonlyMap<CountedLimit, number> {
    const shares = new Map<CountedLimit, number>();
    for (const limit of LIMITS) {
      const share = shareOf(account, limit);
      if (share !== undefined) shares.set(limit, share);
    }
    return shares;
  }

  const highestShareOf = (account: NamedAccount) =>
    LIMITS.reduce((highest, limit) => Math.max(highest, shareOf(account, limit) ?? 0), 0);

  function levelsOf({ metadata, spec }: NamedAccount): LimitLevels {
    const limits = limitsOf({ spec });
    const current = LIMITS.map(limit => {
      const key = levelKey(metadata.name, limit);
      const level = limitLevel(counts.of(metadata.name, limit), limits[limit], levels.get(key));
      if (level === 'within') levels.delete(key);
      else levels.set(key, level);
      return { limit, level };
    });
    const named = (wanted: LimitLevel) => current.flatMap(({ limit, level }) => (level === wanted ? [limit] : []));
    return { reached: named('reached'), near: named('near') };
  }

  return {
    limitsOf,
    levelsOf,
    sharesOf,
    highestShareOf,
    source: {
      reflector: caches.Workspace,
      subscribe: add => {
        listeners.add(add);
        return () => listeners.delete(add);
      },
      // All accounts are already enqueued by their own cache.
      keys: () => [],
    },
  };
}
