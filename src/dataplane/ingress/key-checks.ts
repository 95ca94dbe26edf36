import { withDeadline } from '../../time/deadline.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { IngressLimits } from './limits.ts';
import type { IngressStore } from './store.ts';

/** Validity of ingress keys, by workspace and SHA-256 (hex). */
export interface KeyChecks {
  /** Whether the key was valid at most `keyTtlMs` ago; false: ask. */
  readonly isKnown: (tenant: string, sha256: string) => boolean;
  readonly check: (tenant: string, sha256: string) => Promise<boolean | 'unavailable'>;
}

/**
 * Remembers keys that are valid, never those that are not: a new key works at once, a removed one for at most
 * `keyTtlMs` more.
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
