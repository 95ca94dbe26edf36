import { setTimeout as delay } from 'node:timers/promises';
import type { RedisServer } from '../../support/redis/server.ts';

/**
 * Returns the number of keys changed since Redis was started, not including dispatcher heartbeats and root key reports
 * (two per minute for each role), which are the only writes of an idle installation.
 */
export async function writesOf(redis: Pick<RedisServer, 'command'>): Promise<number> {
  const info = String(await redis.command('INFO', 'persistence', 'commandstats'));
  const read = (pattern: RegExp) => Number(pattern.exec(info)?.[1] ?? 0);
  return read(/rdb_changes_since_last_save:(\d+)/) - read(/cmdstat_zadd:calls=(\d+)/);
}

/** Event counts are folded a few seconds after the event, followed by one more check. */
const CALM_MS = 7_000;
const WITHIN_MS = 40_000;

/**
 * Waits until the result of `count` has not changed for a few seconds, which means that all writes caused by events
 * have been completed.
 *
 * @param count a number that every write raises, such as `writesOf`
 */
export async function untilCalm(count: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  let [last, sinceMs] = [await count(), startedMs];
  while (performance.now() - sinceMs < CALM_MS) {
    if (performance.now() - startedMs > WITHIN_MS) throw new Error(`something is written again and again: ${last}`);
    await delay(250);
    const now = await count();
    if (now !== last) [last, sinceMs] = [now, performance.now()];
  }
}
