import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { RedisClient } from '../redis/client.ts';
import { CLUSTER_KEYS } from '../redis/keys.ts';

/** Reports which root keys a replica has, so that the controller does not use one that others lack. */
export interface RootKeyReport {
  /** Writes the report if it has changed, or if 30 seconds have passed. Never rejects. */
  readonly write: () => Promise<void>;
  /** Removes the report of a replica that ends. Never rejects. */
  readonly withdraw: () => Promise<void>;
}

/** Reports are written with HMSET, which nothing else uses, so that INFO counts them apart from what changes. */
const WRITE_EVERY_MS = 30_000;
/** A replica without a report for this long is gone, and no longer waited for. */
const VALID_MS = 90_000;

/** @param name of the replica. The same after a restart, so that it replaces its last report */
export function createRootKeyReport(
  redis: Pick<RedisClient, 'call'>,
  name: string,
  keys: Pick<KeyRing, 'all'>,
  nowMs: () => number,
): RootKeyReport {
  let written = { ids: '', ms: Number.NEGATIVE_INFINITY };
  return {
    async write() {
      const ids = keys
        .all()
        .map(({ id }) => id)
        .join(' ');
      const ms = nowMs();
      if (ids === written.ids && ms < written.ms + WRITE_EVERY_MS) return;
      const done = await redis.call('hmset', CLUSTER_KEYS.rootKeys, name, `${ms} ${ids}`).then(
        () => true,
        () => false,
      );
      if (done) written = { ids, ms };
    },
    async withdraw() {
      await redis.call('hdel', CLUSTER_KEYS.rootKeys, name).catch(() => {});
    },
  };
}

/**
 * Returns the ids of the root keys of each replica that reported within 90 seconds, and removes older reports, unless the
 * replica has reported again since.
 */
export async function readRootKeyReports(
  redis: Pick<RedisClient, 'run' | 'readHash'>,
  nowMs: number,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const reports = new Map<string, readonly string[]>();
  const gone: string[] = [];
  for (const [name, text] of Object.entries(await redis.readHash(CLUSTER_KEYS.rootKeys))) {
    const [ms, ...ids] = text.split(' ');
    if (Number(ms) + VALID_MS > nowMs) reports.set(name, ids);
    else gone.push(name, text);
  }
  if (gone.length > 0) await redis.run('forget', [CLUSTER_KEYS.rootKeys], gone);
  return reports;
}
