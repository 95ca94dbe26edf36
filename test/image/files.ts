import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** An entry of a layer, as listed by `tar`. */
export type LayerEntry = {
  /** For example, `-rwxr-xr-x`. */
  readonly mode: string;
  /** For example, `0/0`. */
  readonly owner: string;
  readonly time: string;
  readonly path: string;
};

const listed = new Map<string, LayerEntry[]>();

/** Lists the entries of a layer, which can be compressed. */
export function listLayer(file: string): LayerEntry[] {
  const entries = listed.get(file) ?? readEntries(file);
  listed.set(file, entries);
  return entries;
}

function readEntries(file: string): LayerEntry[] {
  const args = ['--list', '--verbose', '--numeric-owner', '--full-time', '--utc', '--file', file];
  const lines = execFileSync('tar', args, { encoding: 'utf8', maxBuffer: 64 * 1_048_576 })
    .trimEnd()
    .split('\n');
  return lines.map(line => {
    const match = /^(\S{10}) +(\S+) +\d+ (\S+ \S+) (.+?)(?: -> .*)?$/.exec(line);
    if (match === null) throw new Error(`cannot parse a line of tar: ${line}`);
    const [, mode = '', owner = '', time = '', path = ''] = match;
    return { mode, owner, time, path };
  });
}

/** Returns the digest of a blob in OCI format. */
export function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

/** Unpacks layers, which can be compressed, over each other. Keeps their file modes. */
export function unpackLayers(files: readonly string[], folder: string): void {
  for (const file of files) {
    execFileSync('tar', ['--extract', '--preserve-permissions', '--file', file, '--directory', folder]);
  }
}

/** Returns one line for each file, folder, and link below a folder: its path, mode, size, and link target. */
export function describeTree(folder: string): string[] {
  return globSync('**/*', { cwd: folder })
    .toSorted()
    .map(path => {
      const entry = lstatSync(join(folder, path));
      if (entry.isSymbolicLink()) return `${path} -> ${readlinkSync(join(folder, path))}`;
      return `${path} ${(entry.mode & 0o7777).toString(8)} ${entry.isDirectory() ? 'folder' : entry.size}`;
    });
}

/** Returns the paths of all regular files below a folder. */
export function listFiles(folder: string): string[] {
  return globSync('**/*', { cwd: folder, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Returns the package URLs of all packages below a root file system, according to their own metadata. */
export function findPackages(root: string, architecture: string): string[] {
  const npm = globSync('**/node_modules/{*,@*/*}/package.json', { cwd: root }).flatMap(path => {
    const { name, version } = JSON.parse(readFileSync(join(root, path), 'utf8')) as { name?: string; version?: string };
    return name === undefined || version === undefined ? [] : [`pkg:npm/${name.replace('@', '%40')}@${version}`];
  });
  const debian = globSync('var/lib/dpkg/status.d/*', { cwd: root }).map(path => {
    const control = readFileSync(join(root, path), 'utf8');
    const field = (name: string) => encodeURIComponent(new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1] ?? '');
    return `pkg:deb/debian/${field('Package')}@${field('Version')}?arch=${architecture}&distro=debian-12`;
  });
  return [...new Set([...npm, ...debian])].toSorted();
}
