import { globSync } from 'node:fs';
import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.ts';
import { copyDependencies, ensureDependencies, type NpmPackage } from './dependencies.ts';
import { fileNameOf, type Platform } from './platforms.ts';
import { copyProgram, PROGRAM } from './program.ts';
import { writeSystem } from './system.ts';

/** Content of the image for one platform, as a folder. */
export interface RootFileSystem {
  readonly platform: Platform;
  readonly folder: string;
}

/**
 * Writes the root file system of each platform to `<folder>/<platform>`, replacing what is there. The program and its
 * dependencies are the same on all platforms.
 *
 * @param project folder with `src`, `package.json`, and `package-lock.json`
 */
export async function writeRootFileSystems(
  project: string,
  platforms: readonly Platform[],
  folder: string,
): Promise<{ readonly roots: RootFileSystem[]; readonly packages: NpmPackage[] }> {
  await rm(folder, { recursive: true, force: true });
  const roots = platforms.map(platform => ({ platform, folder: join(folder, fileNameOf(platform)) }));
  const program = join(folder, PROGRAM);
  await copyProgram(project, folder);
  const packages = await copyDependencies(await ensureDependencies(project), join(program, 'src'), program);
  await setModes(folder, 0o644);
  for (const root of roots) {
    await mkdir(root.folder, { recursive: true });
    await writeSystem(root.folder, root.platform);
    await setModes(root.folder);
    await run('cp', ['--archive', '--link', program, root.folder]);
  }
  await rm(program, { recursive: true });
  return { roots, packages };
}

/**
 * Gives all files the same modes, whatever the umask of the build: readable by everyone, writable by root alone.
 *
 * @param fileMode default: 755 if its owner can execute it, else 644
 */
async function setModes(root: string, fileMode?: number): Promise<void> {
  for (const path of globSync('**/*', { cwd: root })) {
    const entry = await lstat(join(root, path));
    if (entry.isSymbolicLink()) continue;
    const executable = entry.isDirectory() || (entry.mode & 0o100) !== 0;
    await chmod(join(root, path), (entry.isDirectory() ? undefined : fileMode) ?? (executable ? 0o755 : 0o644));
  }
}
