import { COUNTED, COUNTED_KINDS, type CountedLimit, isInUse } from '../../../core/limits/counted-limits.ts';
import { type LimitLevel, type LimitLevels, limitLevel } from '../../../core/limits/limit-levels.ts';
import { type LimitPolicy, limitsOf } from '../../../core/limits/limits.ts';
import { countByAccount } from '../../../kube/account-counts.ts';
import type { Reflector } from '../../../kube/reflector.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import type { KeySource } from '../../engine/keyed-controller.ts';

/** LimitUse compares the usage of each account to its limits. */
export interface LimitUse {
  /** Returns the limits that an account has reached or is close to. The source then reports any change. */
  readonly levelsOf: (account: Pick<Cached<'Account'>, 'spec'> & { metadata: { name: string } }) => LimitLevels;
  /** Enqueues an account when the level of one of its limits changes. This is not done for every object. */
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

  function onChange(account: string, limit: CountedLimit): void {
    const object = caches.Account.store.get(account);
    if (object === undefined || listeners.size === 0) return;
    const before = levels.get(levelKey(account, limit));
    const level = limitLevel(counts.of(account, limit), limitsOf(object.spec, policy)[limit], before);
    if (level !== (before ?? 'within')) for (const listener of listeners) listener(account);
  }

  function levelsOf({ metadata, spec }: Parameters<LimitUse['levelsOf']>[0]): LimitLevels {
    const limits = limitsOf(spec, policy);
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
    levelsOf,
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
