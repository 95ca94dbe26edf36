import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleProgram } from '../../tools/image/bundle.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const DAY_MS = 86_400_000;
const BUNDLES = join(ROOT, '.cache', 'program');

/** The files that determine the content of a bundle. */
const INPUTS = ['package.json', 'package-lock.json', 'tools/image/bundle.ts', 'src/**/*.{ts,json}'];

let bundled: Promise<string> | undefined;

/**
 * Bundles the program in the same way as for the image, unless this has already been done for these sources.
 *
 * @returns the path of its entry point, to be run by Node
 */
export function bundledProgram(): Promise<string> {
  return (bundled ??= makeBundle());
}

async function makeBundle(): Promise<string> {
  const digest = createHash('sha256');
  for (const path of globSync(INPUTS, { cwd: ROOT }).toSorted()) {
    if (!path.endsWith('.test.ts')) digest.update(`${path}\n`).update(await readFile(join(ROOT, path)));
  }
  const folder = join(BUNDLES, digest.digest('hex').slice(0, 16));
  const entry = join(folder, 'sluice.js');
  if (existsSync(entry)) {
    await utimes(folder, new Date(), new Date());
    return entry;
  }
  await removeOld();
  const work = `${folder}.${process.pid}`;
  await mkdir(work, { recursive: true });
  try {
    await bundleProgram({ project: ROOT, folder: work, toRoot: '../../..' });
    await rename(work, folder);
  } catch (error) {
    // Another process may have created the same bundle.
    if (!existsSync(entry)) throw error;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return entry;
}

/** Removes the bundles that have not been used for a day. */
async function removeOld(): Promise<void> {
  for (const name of await readdir(BUNDLES).catch(() => [])) {
    const path = join(BUNDLES, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > DAY_MS) await rm(path, { recursive: true, force: true });
  }
}
