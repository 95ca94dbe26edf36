import { globSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Folder of the program in the image, without the leading slash. */
export const PROGRAM = 'app';

/** Path of the program's entry in the image. */
export const ENTRY = `/${PROGRAM}/src/sluice.ts`;

/** Files beside the sources. The version is read from `package.json`. */
const FILES = ['package.json', 'LICENSE'];

/** Copies the sources without their tests. Nothing outside of `src` is read at run time, except for the version. */
export async function copyProgram(project: string, root: string): Promise<void> {
  const sources = globSync('src/**/*', { cwd: project, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(project.length + 1))
    .filter(path => !/\.test\.ts$|\/testing\//.test(path));
  for (const path of [...FILES, ...sources]) {
    const target = join(root, PROGRAM, path);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(join(project, path), target);
  }
}
