import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Returns the npm packages loaded by a process, using the folder written because of `NODE_V8_COVERAGE`. */
export async function packagesIn(folder: string): Promise<string[]> {
  const names = new Set<string>();
  for (const file of await readdir(folder)) {
    const { result } = JSON.parse(await readFile(join(folder, file), 'utf8')) as { result: { url: string }[] };
    for (const { url } of result) {
      const name = /.*\/node_modules\/((?:@[\w-]+\/)?[\w.-]+)\//.exec(url)?.[1];
      if (name !== undefined) names.add(name);
    }
  }
  return [...names].toSorted();
}
