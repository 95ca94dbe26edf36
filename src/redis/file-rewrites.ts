import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../telemetry/log.ts';
import { fieldOf } from './check.ts';
import type { Master, RedisClient } from './client.ts';

/**
 * In a Cluster, the restart of a single node is not announced. Such a node is used again after the next audit of its
 * keys.
 */
const LOOK_EVERY_MS = 60_000;
/** The interval at which to check if Redis is available. The check does not send a command. */
const LOOK_AGAIN_MS = 1_000;

/** The user lacks the permission, or the service does not have this command. */
const REFUSED = /^(NOPERM|ERR unknown command)/;

/** Returns whether Redis uses an append-only file that it has not rewritten since it started. */
function needsRewrite(info: string): boolean {
  return (
    fieldOf(info, 'aof_enabled') === '1' &&
    // Not 0 after a failed attempt, because each attempt creates another file.
    fieldOf(info, 'aof_rewrites') === '0' &&
    // Unlike `aof_rewrites`, this is not changed by CONFIG RESETSTAT.
    fieldOf(info, 'aof_last_rewrite_time_sec') === '-1' &&
    fieldOf(info, 'aof_rewrite_scheduled') === '0'
  );
}

/**
 * Makes each master rewrite its append-only file once after it has started. If it was killed in the middle of a write,
 * its file can contain the start of a transaction, which would take effect with the next start. Redis does not report
 * this, so other files are rewritten as well.
 */
export function rewriteFilesAfterRestarts(
  redis: Pick<RedisClient, 'masters' | 'onReconnect'>,
  options: { readonly log: Logger; readonly stop: AbortSignal; readonly everyMs?: number },
): void {
  const { log, stop, everyMs = LOOK_EVERY_MS } = options;
  let isRefused = false;

  async function rewrite(master: Master): Promise<void> {
    try {
      if (!needsRewrite(String(await master.call('INFO', 'persistence')))) return;
      await master.call('BGREWRITEAOF');
      log.info({ master: master.name }, 'redis rewrites its append-only file, as it does once after each start');
    } catch (error) {
      note(error as Error, master.name);
    }
  }

  function note(error: Error, master: string): void {
    if (!REFUSED.test(error.message)) {
      // Another controller was faster, or Redis is unavailable, which is reported elsewhere.
      log.debug({ err: error, master }, 'the append-only file of redis was not rewritten');
      return;
    }
    if (isRefused) return;
    isRefused = true;
    log.warn(
      'redis does not allow BGREWRITEAOF: if redis is killed in the middle of a write, a part of this write takes effect with its second start (allow BGREWRITEAOF, or run sluice repair-redis before each start)',
    );
  }

  async function look(): Promise<number> {
    const masters = redis.masters();
    await Promise.all(masters.map(rewrite));
    return masters.length;
  }

  async function run(): Promise<void> {
    while (!stop.aborted && !isRefused) {
      const pauseMs = (await look()) > 0 ? everyMs : LOOK_AGAIN_MS;
      await sleep(pauseMs, undefined, { signal: stop, ref: false }).catch(() => {});
    }
  }
  redis.onReconnect(() => {
    if (!stop.aborted && !isRefused) void look();
  });
  void run();
}
