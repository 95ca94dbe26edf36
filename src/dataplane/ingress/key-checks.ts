import { createBoundedReads } from '../../time/bounded-reads.ts';
import { systemClock } from '../../time/clock.ts';
import { createElapsedClock } from '../../time/elapsed-clock.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { createOccupancy } from '../../time/occupancy.ts';
import type { IngressLimits } from './limits.ts';
import type { IngressStore, KeysVersion } from './store.ts';

/**
 * The standing of a key. It was valid within the last `keyTtlMs`, or was not changed until then. It was wrong within
 * the last `wrongKeyTtlMs`, we are asking the store, or it is not known.
 */
export type KeyStanding = 'valid' | 'wrong' | 'asked' | 'unknown';

/** KeyChecks is a cache of ingress keys, which are identified by their workspace and the hex SHA-256 of the key. */
export interface KeyChecks {
  /** @param name workspace followed by the SHA-256 */
  readonly standingOf: (name: string) => KeyStanding;
  readonly check: (tenant: string, name: string) => Promise<boolean | 'unavailable'>;
}

/** A key that was valid. */
interface Valid {
  /** In milliseconds of the monotonic clock. */
  readonly checkedMs: number;
  /** In milliseconds of the elapsed clock, so that a key also ends while the machine is suspended. */
  readonly endMs: number;
  /** The version of all keys before the key was checked, if it is known. */
  readonly version: string | undefined;
}

/**
 * Creates the cache for keys. If a key has been removed, it may still be accepted for up to `keyTtlMs`. If a key was
 * used before it existed, it may still be refused for up to `wrongKeyTtlMs`. Any other new key can be used immediately.
 */
export function createKeyChecks(options: {
  checkKey: IngressStore['checkKey'];
  /**
   * Returns the version of the keys of all workspaces, which was read in the background. If it has not changed, the
   * store would still return the same for each key.
   */
  keysVersion: () => KeysVersion | undefined;
  limits: IngressLimits;
  /** Monotonic clock in milliseconds, so that no key is remembered for longer if the wall clock is set back. */
  monotonicMs: () => number;
  /** Clock of this machine in milliseconds. */
  wallMs: () => number;
  onFailure: (operation: string, error: unknown) => void;
}): KeyChecks {
  const { checkKey, keysVersion, limits, monotonicMs: nowMs, wallMs, onFailure } = options;
  const { cacheEntries: entries, keyTtlMs, keyKeptMs, wrongKeyTtlMs } = limits;
  const valid = createExpiringMap<Valid>({ ttlMs: keyKeptMs, entries, nowMs });
  const wrong = createExpiringMap<true>({ ttlMs: wrongKeyTtlMs, entries, nowMs });
  const asked = createOccupancy();
  const clock = { ...systemClock, nowMs };
  const elapsed = createElapsedClock(nowMs, wallMs);
  // All keys of a workspace are stored in the same place.
  const reads = createBoundedReads<number | 'unavailable'>({ timeoutMs: limits.ingestTimeoutMs, entries, clock });

  function isValid(name: string): boolean {
    const found = valid.get(name);
    if (found === undefined) return false;
    if (elapsed.nowMs() >= found.endMs) return false;
    const now = nowMs();
    if (now < found.checkedMs + keyTtlMs) return true;
    const seen = keysVersion();
    return seen !== undefined && seen.version === found.version && now < seen.requestedMs + keyTtlMs;
  }

  return {
    standingOf(name) {
      if (isValid(name)) return 'valid';
      if (wrong.get(name) === true) return 'wrong';
      return asked.isUsed(name) ? 'asked' : 'unknown';
    },
    async check(tenant, name) {
      const sha256 = name.slice(tenant.length);
      // A change that is made from now on results in a different version.
      const version = keysVersion()?.version;
      asked.enter(name);
      try {
        const answer = await reads.read(name, tenant, () => checkKey(tenant, sha256));
        if (answer === 'silent' || answer === 'unavailable') return 'unavailable';
        const checkedMs = nowMs();
        if (answer > 0) {
          valid.set(name, { checkedMs, endMs: elapsed.nowMs() + answer, version });
          wrong.delete(name);
        } else {
          valid.delete(name);
          wrong.set(name, true);
        }
        return answer > 0;
      } catch (error) {
        onFailure('checkKey', error);
        return 'unavailable';
      } finally {
        asked.leave(name);
      }
    },
  };
}
