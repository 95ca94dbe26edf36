import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice');
}

/**
 * Returns the path of a file or folder in the cache, calling `make` if it does not exist. The name must include the
 * version or digest of the content. If two processes create the same entry, the first entry is kept.
 * @param make creates the file or folder at the path passed to it. Other files in the same folder are discarded
 */
export async function fromCache(name: string, make: (path: string) => Promise<void>): Promise<string> {
  const target = join(cacheFolder(), name);
  if (existsSync(target)) return target;
  await mkdir(dirname(target), { recursive: true });
  const work = await mkdtemp(join(dirname(target), '.work-'));
  try {
    const made = join(work, 'made');
    await make(made);
    await rename(made, target).catch((error: unknown) => {
      if (!existsSync(target)) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return target;
}
