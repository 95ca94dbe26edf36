import { globSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';

/** The folder of the program in the image, without the leading slash. */
export const PROGRAM = 'app';

/** The path of the program's entry point in the image. */
export const ENTRY = `/${PROGRAM}/src/sluice.js`;

/** The files which are copied in addition to the sources. The version is read from `package.json`. */
const FILES = ['package.json', 'LICENSE'];

/**
 * Copies the sources as JavaScript, without tests. Otherwise, Node would require 25 MB in each process to remove the
 * types. Lines and columns stay the same. Except for the version, no files outside of `src` are read at runtime.
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

/** Returns the path of a project file in the image. */
export function programPath(path: string): string {
  return path.replace(/\.ts$/, '.js');
}

/** Removes types, and changes relative imports to JavaScript files. */
function toJavaScript(source: string): string {
  return stripTypeScriptTypes(source).replace(/(\b(?:from |import |import\())'(\.[^']*)\.ts'/g, "$1'$2.js'");
}
