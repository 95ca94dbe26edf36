import { withDeadline } from '../../time/deadline.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { IngressLimits } from './limits.ts';
import type { IngressStore } from './store.ts';

/** KeyChecks is a cache of valid ingress keys. Entries are identified by workspace and the hex SHA-256 of the key. */
export interface KeyChecks {
  /** Returns true if the key was found valid within the last `keyTtlMs`. If not, it must be checked in the store. */
  readonly isKnown: (tenant: string, sha256: string) => boolean;
  readonly check: (tenant: string, sha256: string) => Promise<boolean | 'unavailable'>;
}

/**
 * Creates a cache of valid keys. Invalid ones are never cached, so a new key works immediately. Removed keys may still
 * be accepted for up to `keyTtlMs`.
 */
export function createKeyChecks(options: {
  checkKey: IngressStore['checkKey'];
  limits: IngressLimits;
  nowMs: () => number;
  onFailure: (operation: string, error: unknown) => void;
}): KeyChecks {
  const { checkKey, limits, nowMs, onFailure } = options;
  const valid = createExpiringMap<true>({ ttlMs: limits.keyTtlMs, entries: limits.cacheEntries, nowMs });
  const readFresh = createSingleFlight<boolean | 'unavailable'>();

  return {
    isKnown: (tenant, sha256) => valid.get(tenant + sha256) === true,
    async check(tenant, sha256) {
      const key = tenant + sha256;
      try {
        const answer = await readFresh(key, () => withDeadline(limits.ingestTimeoutMs, () => checkKey(tenant, sha256)));
        if (answer === true) valid.set(key, true);
        return answer;
      } catch (error) {
        onFailure('checkKey', error);
        return 'unavailable';
      }
    },
  };
}
