import type { RedisClient } from '../redis/client.ts';
import { accountKeys } from '../redis/keys.ts';
import { readNamedScript } from '../redis/named-scripts.ts';

const BEGIN = readNamedScript(new URL('begin-creation.lua', import.meta.url));
/** Longer than an object takes to be created, and to appear in the caches of all replicas. */
const NOTED_MS = 15_000;

/** An object that is being created. */
export interface Creation {
  /** Public id of the account that it counts for. */
  readonly account: string;
  /** Name of the limit that it counts for. */
  readonly limit: string;
  /** Namespace and name. */
  readonly key: string;
}

/** The objects that replicas of the facade have created within 15 seconds. */
export interface Creations {
  /**
   * Notes an object. Returns undefined if no more than `fits` objects are noted, including this one. Otherwise, returns the
   * keys of all objects that were noted at that moment.
   */
  readonly begin: (creation: Creation, fits: number) => Promise<readonly string[] | undefined>;
  /** Forgets an object that was not created. Never rejects. */
  readonly cancel: (creation: Creation) => Promise<void>;
}

/** @param nowMs Redis clock */
export function createCreations(redis: Pick<RedisClient, 'runNamed' | 'call'>, nowMs: () => number): Creations {
  return {
    async begin({ account, limit, key }, fits) {
      const [word, ...keys] = (await redis.runNamed(BEGIN, {
        keys: { creations: accountKeys(account).creations(limit) },
        args: { now: nowMs(), name: key, ttlMs: NOTED_MS, fits },
      })) as [string, ...string[]];
      return word === 'FITS' ? undefined : keys;
    },
    async cancel({ account, limit, key }) {
      // It is forgotten soon anyway.
      await redis.call('zrem', accountKeys(account).creations(limit), key).catch(() => {});
    },
  };
}
