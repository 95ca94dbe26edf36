import { globSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bundleProgram } from './bundle.ts';

/** The folder of the program in the image, without the leading slash. */
export const PROGRAM = 'app';

/** The path of the program's entry point in the image. */
export const ENTRY = `/${PROGRAM}/src/sluice.js`;

/**
 * Writes the bundled program to `<root>/app`, together with the files it reads, such as the scripts for Redis.
 *
 * @returns the paths of the bundled modules, relative to the project
 */
export async function writeProgram(project: string, root: string): Promise<string[]> {
  const modules = await bundleProgram({ project, folder: join(root, PROGRAM, 'src'), toRoot: '..' });
  for (const path of ['LICENSE', ...filesRead(project)]) {
    const target = join(root, PROGRAM, path);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(join(project, path), target);
  }
  return modules;
}

/** Returns the files in `src` that are read while the program is running. JSON files are part of the bundle. */
function filesRead(project: string): string[] {
  return globSync('src/**/*', { cwd: project, withFileTypes: true })
    .filter(entry => entry.isFile() && !/\.(ts|json)$/.test(entry.name))
    .map(entry => join(entry.parentPath, entry.name).slice(project.length + 1))
    .filter(path => !path.includes('/testing/'));
}
