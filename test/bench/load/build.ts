import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder } from '../../support/kubernetes/binaries.ts';
import { buildBinaries } from '../../support/kubernetes/build.ts';

/**
 * Returns the path of the program in this folder, in the cache. Builds it unless its sources have been built before.
 * @throws if Go is missing or too old
 */
export async function buildLoad(): Promise<string> {
  const hash = createHash('sha256');
  const files = (await readdir(import.meta.dirname)).filter(name => /\.go$|^go\.mod$/.test(name)).toSorted();
  for (const file of files) hash.update(file).update(await readFile(join(import.meta.dirname, file)));
  const cache = join(cacheFolder(), 'bench');
  const target = join(cache, hash.digest('hex').slice(0, 8), 'load');
  if (existsSync(target)) return target;
  const order = { name: 'load', goPackage: '.', module: import.meta.dirname, linkerFlags: '-s -w', target };
  const refusal = await buildBinaries([order], { lock: join(cache, 'build.lock'), isThere: existsSync });
  if (refusal !== undefined) throw new Error(`The load generator of the benchmark is not built, and ${refusal}.`);
  return target;
}
