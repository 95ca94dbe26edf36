import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runAtEnd } from '../cleanup.ts';
import { isFree, NUMBERS, nameOf, readRoutes } from './network.ts';

const run = promisify(execFile);

const SWEEP = join(import.meta.dirname, 'sweep.sh');

export type Place = {
  readonly number: number;
  readonly folder: string;
  /** Stops the processes of the node and removes all of its resources outside of its namespaces. */
  readonly sweep: () => Promise<void>;
};

/**
 * Takes a number that is not used by any other node, with a folder of this name. Its file `owner` contains the pid of
 * this process so that `sweepRemains` can determine whether the node is in use.
 */
export async function takePlace(): Promise<Place> {
  await sweepRemains();
  const routes = await readRoutes();
  for (const number of NUMBERS.filter(each => isFree(each, routes))) {
    const folder = join(tmpdir(), nameOf(number));
    const unfinished = await mkdtemp(`${folder}.`);
    await writeFile(join(unfinished, 'owner'), String(process.pid));
    const taken = await rename(unfinished, folder).then(
      () => true,
      () => false,
    );
    if (taken) return { number, folder, sweep: watch(folder) };
    await rm(unfinished, { recursive: true });
  }
  throw new Error('every network from 10.200.0.0/16 to 10.249.0.0/16 is in use: see `ip route`');
}

/**
 * Starts a watcher that sweeps if this process crashes.
 * @returns a function that sweeps immediately and ends the watcher
 */
function watch(folder: string): () => Promise<void> {
  const cancel = runAtEnd('exec sh "$1" "$2"', [SWEEP, folder]);
  let swept: Promise<void> | undefined;
  const sweep = async (): Promise<void> => {
    await run('/bin/sh', [SWEEP, folder]);
    cancel();
  };
  // When called again, the folder may belong to another node.
  return () => {
    swept ??= sweep();
    return swept;
  };
}

/**
 * Removes all resources of nodes whose owner and watcher have both crashed.
 * @returns the folders of these nodes
 */
export async function sweepRemains(): Promise<string[]> {
  const names = new Set(NUMBERS.map(nameOf));
  const folders = (await readdir(tmpdir())).filter(name => names.has(name)).map(name => join(tmpdir(), name));
  const swept: string[] = [];
  for (const folder of folders) {
    if (await isInUse(folder)) continue;
    const isSwept = await run('/bin/sh', [SWEEP, folder]).then(
      () => true,
      () => false,
    );
    if (isSwept) swept.push(folder);
  }
  return swept;
}

/** A folder of another user must not be removed. */
async function isInUse(folder: string): Promise<boolean> {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined || found.uid !== process.getuid?.()) return true;
  const owner = Number(await readFile(join(folder, 'owner'), 'utf8').catch(() => '0'));
  return owner > 0 && isAlive(owner);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
