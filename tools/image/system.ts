import { existsSync, globSync } from 'node:fs';
import { copyFile, lstat, mkdir, mkdtemp, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from './command.ts';
import { downloadPackages, lockedPackages } from './debian.ts';
import { readElf } from './elf.ts';
import { ensureNode } from './node-binary.ts';
import type { Platform } from './platforms.ts';

/** Path of Node in the image. */
export const NODE = '/usr/bin/node';

/** Path of the CA certificates in the image. */
export const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** User and group id of the program. No file belongs to them. */
export const USER_ID = 65_532;

/** Files that programs expect in `/etc`. There is no shell, so nobody can log in. */
const SETTINGS: Readonly<Record<string, string>> = {
  'etc/passwd': [
    'root:x:0:0:root:/root:/sbin/nologin',
    `nonroot:x:${USER_ID}:${USER_ID}:nonroot:/home/nonroot:/sbin/nologin`,
    'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin',
  ].join('\n'),
  'etc/group': ['root:x:0:', `nonroot:x:${USER_ID}:`, 'nogroup:x:65534:'].join('\n'),
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns',
};

/** Empty folders: the home of the user, and the place where a writable volume for temporary files can be mounted. */
const FOLDERS = ['home/nonroot', 'tmp'];

/** Files that the image takes from Debian, besides libraries: licenses, and the names that scanners look for. */
const FROM_DEBIAN = ['etc/os-release', 'usr/share/doc/*/copyright', 'usr/share/common-licenses/*'];

/** Packages of the same source share a folder, so these are links. */
const SHARED_DOCUMENTS = ['usr/share/doc/libgcc-s1', 'usr/share/doc/libstdc++6'];

/**
 * Writes the system to an empty folder: Node with the libraries it loads, CA certificates, user names, licenses, and a
 * description of each Debian package.
 */
export async function writeSystem(root: string, platform: Platform): Promise<void> {
  const unpacked = await mkdtemp(join(tmpdir(), 'sluice-system-'));
  try {
    const archives = await downloadPackages(platform);
    for (const archive of archives) await run('dpkg-deb', ['--extract', archive, unpacked]);
    await copyNode(root, platform);
    await copyLibraries(root, unpacked, platform);
    for (const path of globSync(FROM_DEBIAN, { cwd: unpacked })) await copyWithTarget(unpacked, root, path);
    for (const path of globSync(SHARED_DOCUMENTS, { cwd: unpacked })) await copyLink(unpacked, root, path);
    await writeCertificates(root, unpacked);
    await describePackages(root, archives, platform);
  } finally {
    await rm(unpacked, { recursive: true, force: true });
  }
  for (const [path, text] of Object.entries(SETTINGS)) await write(root, path, `${text}\n`);
  for (const path of FOLDERS) await mkdir(join(root, path), { recursive: true });
}

async function copyNode(root: string, platform: Platform): Promise<void> {
  const node = await ensureNode(platform);
  await mkdir(dirname(join(root, NODE)), { recursive: true });
  await copyFile(join(node, 'node'), join(root, NODE));
  await write(root, 'usr/share/doc/node/LICENSE', await readFile(join(node, 'LICENSE')));
}

/** Copies the dynamic linker and all libraries that Node loads, including those that libraries load. */
async function copyLibraries(root: string, unpacked: string, platform: Platform): Promise<void> {
  const folders = [`lib/${platform.libraries}`, `usr/lib/${platform.libraries}`];
  const { machine, interpreter = '', needed } = readElf(await readFile(join(root, NODE)));
  if (machine !== platform.elfMachine) throw new Error(`${platform.nodePackage} contains Node for another processor`);
  await copyWithTarget(unpacked, root, interpreter.slice(1));
  const found = new Set<string>();
  const pending = [...needed];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    const path = folders.map(folder => join(folder, name)).find(each => existsSync(join(unpacked, each)));
    if (path === undefined) throw new Error(`no locked Debian package contains ${name}, which Node needs`);
    await copyWithTarget(unpacked, root, path);
    pending.push(...readElf(await readFile(join(unpacked, path))).needed);
  }
}

/** Copies a file. For a symbolic link, both the link and the file it leads to. */
async function copyWithTarget(from: string, to: string, path: string): Promise<void> {
  if ((await lstat(join(from, path))).isSymbolicLink()) {
    const link = await copyLink(from, to, path);
    await copyWithTarget(from, to, link.startsWith('/') ? link.slice(1) : join(dirname(path), link));
  } else {
    await mkdir(dirname(join(to, path)), { recursive: true });
    await copyFile(join(from, path), join(to, path));
  }
}

/** Copies a symbolic link. @returns the path it leads to */
async function copyLink(from: string, to: string, path: string): Promise<string> {
  const link = await readlink(join(from, path));
  await mkdir(dirname(join(to, path)), { recursive: true });
  await rm(join(to, path), { force: true });
  await symlink(link, join(to, path));
  return link;
}

/** Joins the certificates in the order of their names, as `update-ca-certificates` does. */
async function writeCertificates(root: string, unpacked: string): Promise<void> {
  const folder = join(unpacked, 'usr', 'share', 'ca-certificates', 'mozilla');
  const names = globSync('*.crt', { cwd: folder }).toSorted();
  const certificates = await Promise.all(names.map(name => readFile(join(folder, name), 'utf8')));
  await write(root, CERTIFICATES, certificates.map(each => `${each.trimEnd()}\n`).join(''));
}

/** Writes the control file of each package to where vulnerability scanners look for it in images without dpkg. */
async function describePackages(root: string, archives: readonly string[], platform: Platform): Promise<void> {
  for (const [index, { name }] of lockedPackages(platform).entries()) {
    await write(root, `var/lib/dpkg/status.d/${name}`, await run('dpkg-deb', ['--field', archives[index] ?? '']));
  }
}

async function write(root: string, path: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content);
}
