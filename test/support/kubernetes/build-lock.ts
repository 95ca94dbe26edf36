import { mkdir, open, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const HEARTBEAT_MS = 5_000;
const STALE_MS = 30_000;

export type Lock = { readonly release: () => Promise<void> };

/**
 * Takes a lock that other processes respect, waiting as long as its holder is alive. A file that exists is the lock; its
 * holder touches it every 5 s, and one untouched for 30 s is taken over. The age decides, not a pid: the cache may be
 * shared by containers, whose pids mean nothing to each other. Two that take over at the same moment may both
 * hold it; they then build the same files twice, and each rename is atomic.
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
