import { existsSync, globSync } from 'node:fs';
import { copyFile, lstat, mkdir, mkdtemp, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '../command.ts';
import type { Platform } from '../platforms.ts';
import { readElf } from './elf.ts';
import { downloadPackages, lockedPackages } from './packages.ts';

/** The user and group id of the program. It does not own any files. */
export const USER_ID = 65_532;

/** The contents of an image, except for user names, libraries, and licenses. */
export interface System {
  /** The names of the Debian packages from which files are taken. */
  readonly packages: readonly string[];
  /** Empty folders. */
  readonly folders: readonly string[];
  /** The path of the program, without the leading slash. Its libraries are added automatically. */
  readonly program: string;
  /** Copies the program and other files to the root. @param unpacked folder with all files of the packages */
  readonly addFiles: (root: string, unpacked: string, platform: Platform) => Promise<void>;
}

/** Files which programs expect in `/etc`. There is no shell, so it is not possible to log in. */
const SETTINGS: Readonly<Record<string, string>> = {
  'etc/passwd': [
    'root:x:0:0:root:/root:/sbin/nologin',
    `nonroot:x:${USER_ID}:${USER_ID}:nonroot:/home/nonroot:/sbin/nologin`,
    'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin',
  ].join('\n'),
  'etc/group': ['root:x:0:', `nonroot:x:${USER_ID}:`, 'nogroup:x:65534:'].join('\n'),
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns',
};

/** Home of the user, and the place where a writable volume for temporary files can be mounted. */
const FOLDERS = ['home/nonroot', 'tmp'];

/**
 * Files of Debian packages that an image contains in addition to libraries: licenses, and the names that scanners
 * search for.
 */
const FROM_DEBIAN = ['etc/os-release', 'usr/share/doc/*/copyright', 'usr/share/common-licenses/*'];

/**
 * Writes a system to an empty folder, consisting of a program with its libraries, user names, licenses, and a
 * description of each Debian package.
 */
export async function writeSystem(root: string, platform: Platform, system: System): Promise<void> {
  const unpacked = await mkdtemp(join(tmpdir(), 'sluice-system-'));
  try {
    const packages = lockedPackages(platform, system.packages);
    const archives = await downloadPackages(platform, packages);
    for (const archive of archives) await run('dpkg-deb', ['--extract', archive, unpacked]);
    await system.addFiles(root, unpacked, platform);
    await copyLibraries(root, unpacked, platform, system.program);
    for (const path of globSync(FROM_DEBIAN, { cwd: unpacked })) await copyWithTarget(unpacked, root, path);
    for (const path of await sharedDocuments(unpacked)) await copyLink(unpacked, root, path);
    for (const [index, { name }] of packages.entries()) {
      // For images without dpkg, vulnerability scanners search for the control file in this folder.
      await write(root, `var/lib/dpkg/status.d/${name}`, await run('dpkg-deb', ['--field', archives[index] ?? '']));
    }
  } finally {
    await rm(unpacked, { recursive: true, force: true });
  }
  for (const [path, text] of Object.entries(SETTINGS)) await write(root, path, `${text}\n`);
  for (const path of [...FOLDERS, ...system.folders]) await mkdir(join(root, path), { recursive: true });
}

/** Packages with the same source share a folder, so some of these folders are links. */
async function sharedDocuments(unpacked: string): Promise<string[]> {
  const paths = globSync('usr/share/doc/*', { cwd: unpacked });
  const entries = await Promise.all(paths.map(path => lstat(join(unpacked, path))));
  return paths.filter((_, index) => entries[index]?.isSymbolicLink());
}

/** Copies the dynamic linker and all libraries loaded by a program, including indirect dependencies. */
async function copyLibraries(root: string, unpacked: string, platform: Platform, program: string): Promise<void> {
  const folders = [`lib/${platform.libraries}`, `usr/lib/${platform.libraries}`];
  const { machine, interpreter = '', needed } = readElf(await readFile(join(root, program)));
  if (machine !== platform.elfMachine)
    throw new Error(`${program} was built for a different processor than ${platform.name}`);
  await copyWithTarget(unpacked, root, interpreter.slice(1));
  const found = new Set<string>();
  const pending = [...needed];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    const path = folders.map(folder => join(folder, name)).find(each => existsSync(join(unpacked, each)));
    if (path === undefined) throw new Error(`no locked Debian package contains ${name}, which ${program} needs`);
    await copyWithTarget(unpacked, root, path);
    pending.push(...readElf(await readFile(join(unpacked, path))).needed);
  }
}

/** Copies a file. For a symbolic link, copies both the link and its target. */
export async function copyWithTarget(from: string, to: string, path: string): Promise<void> {
  if ((await lstat(join(from, path))).isSymbolicLink()) {
    const link = await copyLink(from, to, path);
    await copyWithTarget(from, to, link.startsWith('/') ? link.slice(1) : join(dirname(path), link));
  } else {
    await mkdir(dirname(join(to, path)), { recursive: true });
    await copyFile(join(from, path), join(to, path));
  }
}

/**
 * Copies a symbolic link.
 * @returns the path of its target
 */
async function copyLink(from: string, to: string, path: string): Promise<string> {
  const link = await readlink(join(from, path));
  await mkdir(dirname(join(to, path)), { recursive: true });
  await rm(join(to, path), { force: true });
  await symlink(link, join(to, path));
  return link;
}

/** Writes a file below the root. Creates missing folders. */
export async function write(root: string, path: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content);
}
