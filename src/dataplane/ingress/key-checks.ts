import { createBoundedReads } from '../../time/bounded-reads.ts';
import { systemClock } from '../../time/clock.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { createOccupancy } from '../../time/occupancy.ts';
import type { IngressLimits } from './limits.ts';
import type { IngressStore } from './store.ts';

/**
 * What we know about a key. It was valid within the last `keyTtlMs`, it was wrong within the last `wrongKeyTtlMs`, we
 * are asking the store, or it is not known.
 */
export type KeyStanding = 'valid' | 'wrong' | 'asked' | 'unknown';

/** KeyChecks is a cache of ingress keys, which are identified by their workspace and the hex SHA-256 of the key. */
export interface KeyChecks {
  /** @param name workspace followed by the SHA-256 */
  readonly standingOf: (name: string) => KeyStanding;
  readonly check: (tenant: string, name: string) => Promise<boolean | 'unavailable'>;
}

/**
 * Creates the cache for keys. If a key has been removed, it may still be accepted for up to `keyTtlMs`. If a key was
 * used before it existed, it may still be refused for up to `wrongKeyTtlMs`. Otherwise, it can be used immediately.
 */
export function createKeyChecks(options: {
  checkKey: IngressStore['checkKey'];
  limits: IngressLimits;
  /** Monotonic clock in milliseconds, so that no key is remembered for longer if the wall clock is set back. */
  monotonicMs: () => number;
  onFailure: (operation: string, error: unknown) => void;
}): KeyChecks {
  const { checkKey, limits, monotonicMs: nowMs, onFailure } = options;
  const { cacheEntries: entries, keyTtlMs, wrongKeyTtlMs } = limits;
  const valid = createExpiringMap<true>({ ttlMs: keyTtlMs, entries, nowMs });
  const wrong = createExpiringMap<true>({ ttlMs: wrongKeyTtlMs, entries, nowMs });
  const asked = createOccupancy();
  const clock = { ...systemClock, nowMs };
  // All keys of a workspace are stored in the same place.
  const reads = createBoundedReads<boolean | 'unavailable'>({ timeoutMs: limits.ingestTimeoutMs, entries, clock });

  return {
    standingOf(name) {
      if (valid.get(name) === true) return 'valid';
      if (wrong.get(name) === true) return 'wrong';
      return asked.isUsed(name) ? 'asked' : 'unknown';
    },
    async check(tenant, name) {
      const sha256 = name.slice(tenant.length);
      asked.enter(name);
      try {
        const answer = await reads.read(name, tenant, () => checkKey(tenant, sha256));
        if (answer === true) {
          valid.set(name, true);
          wrong.delete(name);
        } else if (answer === false) wrong.set(name, true);
        return answer === 'silent' ? 'unavailable' : answer;
      } catch (error) {
        onFailure('checkKey', error);
        return 'unavailable';
      } finally {
        asked.leave(name);
      }
    },
  };
}
