import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fromCache } from '../cache.ts';
import { CannotBuildError, reasonOf, run } from './command.ts';
import type { Platform } from './platforms.ts';

const LOCK = join(import.meta.dirname, '..', '..', 'test', 'support', 'node', 'package-lock.json');

/** Returns the locked version and digest (`sha512-<base64>`) of the npm package containing Node. */
export function lockedNode({ nodePackage }: Platform): { readonly version: string; readonly integrity: string } {
  const { packages } = JSON.parse(readFileSync(LOCK, 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity: string }>>;
  };
  const locked = packages[`node_modules/${nodePackage}`];
  if (locked === undefined) throw new Error(`${LOCK} does not contain ${nodePackage}`);
  return locked;
}

/** Returns a folder with the locked `node` for a platform and its `LICENSE`, downloading them with npm if needed. */
export function ensureNode(platform: Platform): Promise<string> {
  const { version, integrity } = lockedNode(platform);
  const digest = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
  return fromCache(`image/node/${platform.nodePackage}-${version}-${digest.slice(0, 16)}`, async path => {
    const work = dirname(path);
    const wanted = `${platform.nodePackage}@${version}`;
    const args = ['pack', wanted, '--silent', '--pack-destination', work];
    await run('npm', args, { cwd: work }).catch(error => {
      throw new CannotBuildError(`cannot download the npm package ${wanted}: ${reasonOf(error)}`, { cause: error });
    });
    const archive = join(work, `${platform.nodePackage}-${version}.tgz`);
    const actual = createHash('sha512')
      .update(await readFile(archive))
      .digest('hex');
    if (actual !== digest) throw new Error(`${wanted} has the digest ${actual}, but ${digest} is locked`);
    await run('tar', ['--extract', '--file', archive, '--directory', work, 'package/bin/node', 'package/LICENSE']);
    await mkdir(path);
    await rename(join(work, 'package', 'bin', 'node'), join(path, 'node'));
    await rename(join(work, 'package', 'LICENSE'), join(path, 'LICENSE'));
  });
}
