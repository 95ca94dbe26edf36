import { globSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';

/** Folder of the program in the image, without the leading slash. */
export const PROGRAM = 'app';

/** Path of the program's entry in the image. */
export const ENTRY = `/${PROGRAM}/src/sluice.js`;

/** Files beside the sources. The version is read from `package.json`. */
const FILES = ['package.json', 'LICENSE'];

/**
 * Copies the sources without their tests, as JavaScript: Node would need 25 MB in each process to remove the types itself.
 * Lines and columns stay the same. Nothing outside of `src` is read at run time, except for the version.
 */
export async function copyProgram(project: string, root: string): Promise<void> {
  const sources = globSync('src/**/*', { cwd: project, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(project.length + 1))
    .filter(path => !/\.test\.ts$|\/testing\//.test(path));
  for (const path of [...FILES, ...sources]) {
    const [source, target] = [join(project, path), join(root, PROGRAM, programPath(path))];
    await mkdir(dirname(target), { recursive: true });
    if (path.endsWith('.ts')) await writeFile(target, toJavaScript(await readFile(source, 'utf8')));
    else await copyFile(source, target);
  }
}

/** Returns the path in the image of a file of the project. */
export function programPath(path: string): string {
  return path.replace(/\.ts$/, '.js');
}

/** Removes types, and lets relative imports name JavaScript files. */
function toJavaScript(source: string): string {
  return stripTypeScriptTypes(source).replace(/(\b(?:from |import |import\())'(\.[^']*)\.ts'/g, "$1'$2.js'");
}
