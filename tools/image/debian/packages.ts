import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromCache } from '../../cache.ts';
import { CannotBuildError, reasonOf, run } from '../command.ts';
import type { Platform } from '../platforms.ts';
import { type Apt, openApt } from './apt.ts';

/** A Debian package at a fixed version. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  /** The digest of the `.deb` file, in hexadecimal. */
  readonly sha256: string;
}

const LOCK = join(import.meta.dirname, 'lock.json');

/**
 * Returns the locked packages of a platform with these names, in the same order.
 * @throws {CannotBuildError} if a package is not locked
 */
export function lockedPackages({ architecture }: Platform, names: readonly string[]): readonly DebianPackage[] {
  const lock = JSON.parse(readFileSync(LOCK, 'utf8')) as Readonly<Record<string, readonly DebianPackage[]>>;
  return names.map(name => {
    const locked = lock[architecture]?.find(each => each.name === name);
    if (locked !== undefined) return locked;
    throw new CannotBuildError(`${name} is not locked: run \`bin/node tools/image/main.ts --update-debian\``);
  });
}

/**
 * Downloads the locked packages of a platform that are not in the cache. Does not install anything.
 * @returns paths of the `.deb` files, in the order of the packages
 * @throws {CannotBuildError} if apt is missing or offline, or does not know a version
 */
export async function downloadPackages(platform: Platform, packages: readonly DebianPackage[]): Promise<string[]> {
  const apt = await openApt(platform.architecture);
  try {
    const paths: string[] = [];
    for (const locked of packages) {
      paths.push(await fromCache(cacheName(locked), path => downloadLocked(apt, locked, path)));
    }
    return paths;
  } finally {
    await apt.close();
  }
}

/** The digest is different for each architecture. */
function cacheName({ name, sha256 }: DebianPackage): string {
  return `image/debian/${name}-${sha256}.deb`;
}

async function downloadLocked(apt: Apt, { name, version, sha256 }: DebianPackage, path: string): Promise<void> {
  const wanted = `${name}=${version}`;
  try {
    await apt.download(wanted, path);
  } catch (error) {
    if (error instanceof CannotBuildError) throw error;
    throw new CannotBuildError(
      `cannot download ${wanted} from the Debian 12 sources of this machine: ${reasonOf(error)}\n` +
        'If Debian has replaced this version, run `bin/node tools/image/main.ts --update-debian` and commit the lock.',
      { cause: error },
    );
  }
  const actual = await digestOf(path);
  if (actual !== sha256) throw new Error(`${wanted} has the digest ${actual}, but ${sha256} is locked`);
}

/** Locks the current Debian versions of these packages. */
export async function updateLock(platforms: readonly Platform[], names: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-debian-'));
  try {
    const lock: Record<string, DebianPackage[]> = {};
    for (const { architecture } of platforms) {
      const apt = await openApt(architecture);
      lock[architecture] = [];
      for (const name of names) {
        const file = join(folder, `${name}-${architecture}.deb`);
        await apt.download(name, file);
        const version = (await run('dpkg-deb', ['--field', file, 'Version'])).trim();
        lock[architecture].push({ name, version, sha256: await digestOf(file) });
      }
      await apt.close();
    }
    await writeFile(LOCK, `${JSON.stringify(lock, undefined, 2)}\n`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function digestOf(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}
