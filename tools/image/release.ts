import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './command.ts';

/** Facts about the release of an image. */
export interface Release {
  /** The name of the repository, e.g. `sluice`. */
  readonly name: string;
  readonly title: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  /** The time (RFC 3339): `SOURCE_DATE_EPOCH`, the time of the commit, or 1970. */
  readonly created: string;
  /** The Git commit if all inputs of the image are the same as in this commit. */
  readonly revision: string | undefined;
}

/** All files of the project that have an effect on the image. */
const INPUTS = ['src', 'package.json', 'package-lock.json', '.npmrc', 'LICENSE', 'tools/image', 'test/support/node'];

/** Reads the metadata from `package.json` and git. Without git, there is no revision. */
export async function readRelease(project: string): Promise<Release> {
  const { name, version, description, license } = JSON.parse(
    readFileSync(join(project, 'package.json'), 'utf8'),
  ) as Release;
  const git = async (...args: string[]) => (await run('git', ['-C', project, ...args])).trim();
  const inside = await git('rev-parse', '--show-toplevel').then(
    top => realpathSync(top) === realpathSync(project),
    () => false,
  );
  const seconds = process.env.SOURCE_DATE_EPOCH ?? (inside ? await git('log', '-1', '--format=%ct') : '0');
  const isClean = inside && (await git('status', '--porcelain', '--', ...INPUTS)) === '';
  return {
    name,
    title: 'Sluice',
    version,
    description,
    license,
    created: new Date(Number(seconds) * 1_000).toISOString().replace('.000', ''),
    revision: isClean ? await git('rev-parse', 'HEAD') : undefined,
  };
}

/** Returns the metadata of the Redis image for a Sluice release, which uses the same version. */
export function releaseOfRedis(release: Release): Release {
  return {
    ...release,
    name: `${release.name}-redis`,
    title: 'Redis for Sluice',
    description: 'A single Redis for evaluating Sluice',
    license: 'BSD-3-Clause',
  };
}
