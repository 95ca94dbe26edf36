import { setTimeout as delay } from 'node:timers/promises';
import type { RedisServer } from '../../support/redis/server.ts';

/**
 * Returns how many keys Redis has changed since its start, without the heartbeats of dispatchers, and the reports of
 * root keys (two a minute and role), which are the only writes that go on while nothing happens.
 */
export async function writesOf(redis: Pick<RedisServer, 'command'>): Promise<number> {
  const info = String(await redis.command('INFO', 'persistence', 'commandstats'));
  const read = (pattern: RegExp) => Number(pattern.exec(info)?.[1] ?? 0);
  return read(/rdb_changes_since_last_save:(\d+)/) - read(/cmdstat_zadd:calls=(\d+)/);
}

/** What was counted of an event is folded some seconds after it, and once more looked for. */
const CALM_MS = 7_000;
const WITHIN_MS = 40_000;

/**
 * Waits until what `count` reads has stayed as it is for some seconds: everything that events have left to be written is.
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
