import { globSync } from 'node:fs';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type System, write } from './debian/system.ts';
import { ensureNode } from './node-binary.ts';
import type { Platform } from './platforms.ts';

/** The path of Node in the image. */
export const NODE = '/usr/bin/node';

/** The path of the CA certificates in the image. */
export const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** The contents of the Sluice image, except for the program and its dependencies: Node and CA certificates. */
export const NODE_SYSTEM: System = {
  packages: ['base-files', 'ca-certificates', 'gcc-12-base', 'libc6', 'libgcc-s1', 'libstdc++6'],
  folders: [],
  program: NODE.slice(1),
  addFiles: async (root, unpacked, platform) => {
    await copyNode(root, platform);
    await writeCertificates(root, unpacked);
  },
};

async function copyNode(root: string, platform: Platform): Promise<void> {
  const node = await ensureNode(platform);
  await mkdir(dirname(join(root, NODE)), { recursive: true });
  await copyFile(join(node, 'node'), join(root, NODE));
  await write(root, 'usr/share/doc/node/LICENSE', await readFile(join(node, 'LICENSE')));
}

/** Concatenates the certificates in the order of their names, like `update-ca-certificates`. */
async function writeCertificates(root: string, unpacked: string): Promise<void> {
  const folder = join(unpacked, 'usr', 'share', 'ca-certificates', 'mozilla');
  const names = globSync('*.crt', { cwd: folder }).toSorted();
  const certificates = await Promise.all(names.map(name => readFile(join(folder, name), 'utf8')));
  await write(root, CERTIFICATES, certificates.map(each => `${each.trimEnd()}\n`).join(''));
}
