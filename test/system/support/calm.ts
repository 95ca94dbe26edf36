import { setTimeout as delay } from 'node:timers/promises';
import type { RedisServer } from '../../support/redis/server.ts';

/**
 * Returns the number of keys changed since Redis was started. Excludes heartbeats of dispatchers and reports of root
 * keys (two per minute for each role), which are the only writes of an idle installation.
 */
export async function writesOf(redis: Pick<RedisServer, 'command'>): Promise<number> {
  const info = String(await redis.command('INFO', 'persistence', 'commandstats'));
  const read = (pattern: RegExp) => Number(pattern.exec(info)?.[1] ?? 0);
  return read(/rdb_changes_since_last_save:(\d+)/) - read(/cmdstat_zadd:calls=(\d+)/);
}

/**
 * The time without changes to wait for, in milliseconds. Event counts are folded a few seconds after the event,
 * followed by one more check.
 */
const CALM_MS = 7_000;
const WITHIN_MS = 120_000;

/**
 * Waits until the result of `count` has not changed for a few seconds, which means that all writes caused by events
 * have been completed.
 * @param count a number that increases with every write, such as `writesOf`
 */
export async function untilCalm(count: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  let [last, sinceMs] = [await count(), startedMs];
  while (performance.now() - sinceMs < CALM_MS) {
    if (performance.now() - startedMs > WITHIN_MS) throw new Error(`there are still writes: ${last}`);
    await delay(500);
    const now = await count();
    if (now !== last) [last, sinceMs] = [now, performance.now()];
  }
}
