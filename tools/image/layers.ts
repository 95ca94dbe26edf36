import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readdir, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fromCache } from '../cache.ts';
import { run } from './command.ts';
import { PROGRAM } from './program.ts';

/** A compressed layer. */
export interface Layer {
  readonly name: string;
  /** The path of the gzip file. */
  readonly file: string;
  /** The digest and size of the gzip file, in bytes. */
  readonly digest: string;
  readonly size: number;
  /** The digest of the tar file in the gzip file. */
  readonly diffId: string;
}

/** Options without which times, owners, and the order of entries would depend on the machine. */
const DETERMINISTIC = [
  '--sort=name',
  '--mtime=@0',
  '--owner=0',
  '--group=0',
  '--numeric-owner',
  '--format=posix',
  '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime',
];

/** Packs everything except for the program. This layer differs between platforms. */
export async function packSystem(root: string): Promise<Layer> {
  const paths = await readdir(root);
  const system = paths.filter(path => path !== PROGRAM).toSorted();
  // This layer is large and seldom changes, so it is only compressed once.
  return packLayer('system', root, system, (name, make) => fromCache(`image/${name}`, make));
}

/** Packs the program, which is replaced by each release. @param folder for the compressed file */
export async function packProgram(root: string, folder: string): Promise<Layer> {
  return packLayer('program', root, [PROGRAM], async (name, make) => {
    await make(join(folder, name));
    return join(folder, name);
  });
}

/** Returns the path of a file with this name, which is created by `make`. */
type Place = (name: string, make: (path: string) => Promise<void>) => Promise<string>;

async function packLayer(name: string, root: string, paths: readonly string[], place: Place): Promise<Layer> {
  const args = ['--create', '--directory', root, ...DETERMINISTIC, ...paths];
  const diffId = await digestOfOutput('tar', args);
  // GNU gzip has created the same bytes for decades. The output of zlib depends on its version and on the processor.
  const file = await place(`${name}-${diffId.slice('sha256:'.length)}.gz`, async path => {
    const tar = join(dirname(path), 'layer');
    await run('tar', ['--file', tar, ...args]);
    await run('gzip', ['--no-name', '-6', tar]);
    await rename(`${tar}.gz`, path);
  });
  return { name, file, digest: await digestOf(createReadStream(file)), size: (await stat(file)).size, diffId };
}

/** Returns the SHA-256 of a stream in the format of OCI. */
async function digestOf(stream: Readable): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(stream, hash);
  return `sha256:${hash.digest('hex')}`;
}

async function digestOfOutput(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [digest, [code]] = await Promise.all([digestOf(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`${command} failed with exit code ${code}`);
  return digest;
}
