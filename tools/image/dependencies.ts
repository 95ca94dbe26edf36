import { createHash } from 'node:crypto';
import { copyFileSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fromCache } from './cache.ts';
import { CannotBuildError, reasonOf, run } from './command.ts';

/** An npm package of the image. */
export interface NpmPackage {
  /** The folder within the project, e.g. `node_modules/ajv/node_modules/fast-uri`. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  /** The SPDX expression, as provided by the author. */
  readonly license: string | undefined;
  /** The digest of the archive of the package, `sha512-<base64>`. */
  readonly integrity: string | undefined;
}

/**
 * Returns a folder with the complete `node_modules` of the production dependencies in the lockfile, as installed by
 * npm.
 */
export async function ensureDependencies(root: string): Promise<string> {
  const files = ['package.json', 'package-lock.json', '.npmrc'];
  const digest = createHash('sha256');
  for (const file of files) digest.update(await readFile(join(root, file)));
  return fromCache(`dependencies/${digest.digest('hex').slice(0, 32)}`, async path => {
    await mkdir(path);
    for (const file of files) await copyFile(join(root, file), join(path, file));
    const options = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await run('npm', ['ci', ...options], { cwd: path }).catch(error => {
      throw new CannotBuildError(`cannot install the packages of package-lock.json: ${reasonOf(error)}`, {
        cause: error,
      });
    });
  });
}

/** Package folders that are never loaded by the program. */
const UNUSED_FOLDERS = /(^|\/)(\.[^/]+|__tests__|benchmarks?|docs|examples?|tests?)(\/|$)/;

const CODE = /\.(js|cjs|mjs|json|wasm)$/;
const UNUSED_CODE = /(^|\/)(\.[^/]+|tsconfig[^/]*\.json|package-lock\.json)$/;
const LICENSE = /^(authors|copying|copyright|licen[cs]e|notice|patents)/i;

/** The pages that the facade serves at /waas/docs. */
const SERVED = /^node_modules\/@fastify\/swagger-ui\/static\/(?!.*\.map$)/;

/** Returns true for files that the program may load or serve, and for licenses. `path` starts with `node_modules/`. */
export function isNeeded(path: string): boolean {
  // A package may be called docs, test, or similar.
  const within = path.replace(/^.*node_modules\/(?:@[^/]+\/)?[^/]+\//, '');
  if (UNUSED_FOLDERS.test(dirname(within))) return false;
  return SERVED.test(path) || LICENSE.test(basename(path)) || (CODE.test(path) && !UNUSED_CODE.test(within));
}

/**
 * Copies the packages that the program may load. These are the packages mentioned in its source files, the packages
 * mentioned in these packages, and so on. Excludes tests, declarations, source maps, and documentation.
 * @param installed folder from `ensureDependencies`
 * @returns the copied packages, sorted by path
 * @throws {Error} if a package contains a native addon because all platforms share these files
 */
export async function copyDependencies(installed: string, sources: string, target: string): Promise<NpmPackage[]> {
  const lock = readLock(installed);
  const files = globSync('node_modules/**/*', { cwd: installed, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(installed.length + 1));
  const kept = Map.groupBy(files.filter(isNeeded), packageOf);
  // This excludes packages that only contain declarations.
  for (const [name, paths] of kept) {
    if (!paths.some(path => CODE.test(path) && basename(path) !== 'package.json')) kept.delete(name);
  }
  const wanted = reachablePackages(installed, sources, kept);
  const native = files.filter(path => wanted.has(packageOf(path)) && path.endsWith('.node'));
  if (native.length > 0) throw new Error(`native addons must be installed for each platform: ${native.join(', ')}`);
  const copied = [...wanted].flatMap(name => kept.get(name) ?? []);
  for (const folder of new Set(copied.map(path => dirname(path)))) mkdirSync(join(target, folder), { recursive: true });
  for (const path of copied) copyFileSync(join(installed, path), join(target, path));
  return [...wanted].toSorted().map(path => {
    const { version = '', license, integrity } = lock[path] ?? {};
    return { path, name: path.replace(/^.*node_modules\//, ''), version, license, integrity };
  });
}

function readLock(folder: string) {
  return (
    JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
      readonly packages: Readonly<Record<string, { version: string; license?: string; integrity?: string }>>;
    }
  ).packages;
}

/** Returns the package folder of a file. */
function packageOf(path: string): string {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? '';
}

/** Matches a quoted string that may be a package name, optionally including a path. */
const MENTION = /['"`]((?:@[\w.-]+\/)?[\w.-]+)(?:\/[^'"`\n]*)?['"`]/g;

function reachablePackages(
  installed: string,
  sources: string,
  kept: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const found = new Set<string>();
  const sourceFiles = globSync('**/*.js', { cwd: sources }).map(path => join(sources, path));
  const pending: { readonly from: string; readonly files: readonly string[] }[] = [{ from: '', files: sourceFiles }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const name of new Set(next.files.flatMap(mentionsIn))) {
      const path = resolvePackage(name, next.from, kept);
      if (path === undefined || found.has(path)) continue;
      found.add(path);
      const code = (kept.get(path) ?? []).filter(file => /\.[cm]?js$/.test(file));
      pending.push({ from: path, files: code.map(file => join(installed, file)) });
    }
  }
  return found;
}

function mentionsIn(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(MENTION)].map(([, name = '']) => name);
}

/**
 * Returns the folder in which Node finds a package from another package, i.e. the nearest `node_modules` containing it.
 */
function resolvePackage(name: string, from: string, kept: ReadonlyMap<string, unknown>): string | undefined {
  for (let folder = from; ; folder = folder.replace(/\/?node_modules\/(?:@[^/]+\/)?[^/]+$/, '')) {
    const path = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (kept.has(path)) return path;
    if (folder === '') return undefined;
  }
}
