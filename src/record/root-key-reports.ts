import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { RedisClient } from '../redis/client.ts';
import { CLUSTER_KEYS } from '../redis/keys.ts';

/** Reports a replica's root keys so that the controller does not use a key that is missing on other replicas. */
export interface RootKeyReport {
  /** Writes the report if it has changed or if 30 seconds have passed. Never rejects. */
  readonly write: () => Promise<void>;
  /** Removes the report of a replica that is shutting down. Never rejects. */
  readonly withdraw: () => Promise<void>;
}

const WRITE_EVERY_MS = 30_000;
/**
 * If a replica has not sent a report for this time, it is considered gone. The controller then no longer waits for it.
 */
const VALID_MS = 90_000;

/**
 * @param name of the replica, without spaces. The name does not change after a restart so that it replaces its last
 * report
 */
export function createRootKeyReport(
  redis: Pick<RedisClient, 'call'>,
  name: string,
  keys: Pick<KeyRing, 'all'>,
  nowMs: () => number,
): RootKeyReport {
  let written = { report: '', ms: Number.NEGATIVE_INFINITY };
  const remove = async (report: string) => void (await redis.call('zrem', CLUSTER_KEYS.rootKeys, report));
  return {
    async write() {
      const report = [name, ...keys.all().map(({ id }) => id)].join(' ');
      const before = written;
      const ms = nowMs();
      if (report === before.report && ms < before.ms + WRITE_EVERY_MS) return;
      try {
        await redis.call('zadd', CLUSTER_KEYS.rootKeys, ms, report);
        written = { report, ms };
        if (report !== before.report && before.report !== '') await remove(before.report);
      } catch {
        // The report is written again when the files are checked the next time.
      }
    },
    async withdraw() {
      await remove(written.report).catch(() => {});
    },
  };
}

/** Returns the root key ids of each replica with a report from the last 90 seconds and removes older reports. */
export async function readRootKeyReports(
  redis: Pick<RedisClient, 'call'>,
  nowMs: number,
): Promise<ReadonlyMap<string, readonly string[]>> {
  await redis.call('zremrangebyscore', CLUSTER_KEYS.rootKeys, '-inf', nowMs - VALID_MS);
  const reports = (await redis.call('zrange', CLUSTER_KEYS.rootKeys, 0, -1)) as string[];
  // The newest report is last, so it replaces a report from before a restart.
  return new Map(
    reports.map(report => {
      const [name = '', ...ids] = report.split(' ');
      return [name, ids] as const;
    }),
  );
}
