import { globSync } from 'node:fs';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** An npm package of the image. */
export interface NpmPackage {
  /** The folder within the project, e.g. `node_modules/ajv/node_modules/fast-uri`. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  /** The SPDX expression, as provided by the author. */
  readonly license: string | undefined;
  /** The digest of the package's archive, `sha512-<base64>`. */
  readonly integrity: string | undefined;
}

const LICENSE = /^(authors|copying|copyright|licen[cs]e|notice|patents)/i;

/** The pages that the facade serves at /waas/docs. */
const SERVED = /^static\/(?!.*\.map$)/;
const SERVED_FROM = 'node_modules/@fastify/swagger-ui';

/**
 * Copies the licenses of the bundled packages, the `package.json` that scanners use to recognize their versions, and
 * the pages that the facade serves.
 *
 * @param modules from `bundleProgram`
 * @param target folder for `node_modules`
 * @returns the packages, sorted by path
 * @throws {Error} if a package contains a native addon because all platforms share these files
 */
export async function copyPackages(project: string, modules: readonly string[], target: string): Promise<NpmPackage[]> {
  const paths = [...new Set(modules.map(packageOf))].filter(path => path !== '').toSorted();
  const { packages } = JSON.parse(await readFile(join(project, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { version: string; license?: string; integrity?: string }>>;
  };
  for (const path of paths) {
    const files = filesOf(join(project, path));
    const native = files.filter(file => file.endsWith('.node'));
    if (native.length > 0) throw new Error(`native addons must be installed for each platform: ${path}/${native[0]}`);
    for (const file of files.filter(name => isNeeded(path, name))) {
      const to = join(target, path, file);
      await mkdir(dirname(to), { recursive: true });
      await copyFile(join(project, path, file), to);
    }
  }
  return paths.map(path => {
    const { version = '', license, integrity } = packages[path] ?? {};
    return { path, name: path.replace(/^.*node_modules\//, ''), version, license, integrity };
  });
}

/** Returns a package's files, without those of the packages in it. */
function filesOf(folder: string): string[] {
  return globSync('**/*', { cwd: folder, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter(file => !/(^|\/)node_modules\//.test(file));
}

function isNeeded(path: string, file: string): boolean {
  if (path === SERVED_FROM && SERVED.test(file)) return true;
  return file === 'package.json' || (LICENSE.test(basename(file)) && !/\.[cm]?[jt]s$/.test(file));
}

/** Returns the package folder of a module, or an empty string if it is not in a package. */
function packageOf(path: string): string {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? '';
}
