import { mkdir, open, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const HEARTBEAT_MS = 5_000;
const STALE_MS = 30_000;

export type Lock = { readonly release: () => Promise<void> };

/**
 * Takes a lock that is respected by other processes. Waits until it has been released or its holder has crashed. The
 * lock is a file that its holder touches every 5 s. If the file was not touched for 30 s, the lock is taken over. This
 * uses the age instead of a pid because the cache may be shared by containers, whose pids are not related. If two
 * processes take over at the same time, both of them may hold the lock. In this case, they build the same files twice,
 * and each rename is atomic.
 */
export async function acquireLock(path: string, options: { askEveryMs?: number } = {}): Promise<Lock> {
  await mkdir(dirname(path), { recursive: true });
  for (;;) {
    const file = await open(path, 'wx').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return undefined;
      throw error;
    });
    if (file !== undefined) {
      await file.close();
      return hold(path);
    }
    await removeStale(path);
    await delay(options.askEveryMs ?? 500);
  }
}

function hold(path: string): Lock {
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => {});
  }, HEARTBEAT_MS);
  heartbeat.unref();
  return {
    release: async () => {
      clearInterval(heartbeat);
      await rm(path, { force: true });
    },
  };
}

async function removeStale(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || Date.now() - found.mtimeMs < STALE_MS) return;
  const aside = `${path}.${process.pid}`;
  await rename(path, aside).catch(() => {});
  await rm(aside, { force: true });
}
