import { globSync } from 'node:fs';
import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.ts';
import { type System, writeSystem } from './debian/system.ts';
import { copyPackages, type NpmPackage } from './dependencies.ts';
import { fileNameOf, type Platform } from './platforms.ts';
import { PROGRAM, writeProgram } from './program.ts';
import { NODE_SYSTEM } from './system.ts';

/** The content of an image for a single platform, as a folder. */
export interface RootFileSystem {
  readonly platform: Platform;
  readonly folder: string;
}

/**
 * Writes the root file system of each platform to `<folder>/<platform>`, replacing existing files.
 *
 * @returns the folders, in the order of the platforms
 */
export async function writeRoots(
  system: System,
  platforms: readonly Platform[],
  folder: string,
): Promise<RootFileSystem[]> {
  await rm(folder, { recursive: true, force: true });
  const roots = platforms.map(platform => ({ platform, folder: join(folder, fileNameOf(platform)) }));
  for (const root of roots) {
    await mkdir(root.folder, { recursive: true });
    await writeSystem(root.folder, root.platform, system);
    await setModes(root.folder);
  }
  return roots;
}

/**
 * Writes the root file systems of Sluice, in the same way as `writeRoots`. The program is the same for all platforms.
 *
 * @param project folder with `src`, `package.json`, `package-lock.json`, and `node_modules`
 */
export async function writeSluiceRoots(
  project: string,
  platforms: readonly Platform[],
  folder: string,
): Promise<{ readonly roots: RootFileSystem[]; readonly packages: NpmPackage[] }> {
  const roots = await writeRoots(NODE_SYSTEM, platforms, folder);
  const program = join(folder, PROGRAM);
  const packages = await copyPackages(project, await writeProgram(project, folder), program);
  await setModes(program, 0o644);
  await chmod(program, 0o755);
  for (const root of roots) await run('cp', ['--archive', '--link', program, root.folder]);
  await rm(program, { recursive: true });
  return { roots, packages };
}

/**
 * Sets the same file modes regardless of the umask of the build: readable by all users, and only writable by root.
 * @param fileMode defaults to 755 if the owner can execute the file, and to 644 otherwise
 */
async function setModes(root: string, fileMode?: number): Promise<void> {
  for (const path of globSync('**/*', { cwd: root })) {
    const entry = await lstat(join(root, path));
    if (entry.isSymbolicLink()) continue;
    const executable = entry.isDirectory() || (entry.mode & 0o100) !== 0;
    await chmod(join(root, path), (entry.isDirectory() ? undefined : fileMode) ?? (executable ? 0o755 : 0o644));
  }
}
