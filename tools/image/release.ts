import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './command.ts';

/** Facts about the release that an image is built from. */
export interface Release {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  /** RFC 3339: `SOURCE_DATE_EPOCH`, else the time of the commit, else 1970. */
  readonly created: string;
  /** Git commit, if none of the image's inputs differ from it. */
  readonly revision: string | undefined;
}

/** Everything in the project that has an effect on the image. */
const INPUTS = ['src', 'package.json', 'package-lock.json', '.npmrc', 'LICENSE', 'tools/image', 'test/support/node'];

/** Reads the facts from `package.json` and git. A project without git has no revision. */
export async function readRelease(project: string): Promise<Release> {
  const { version, description, license } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as Release;
  const git = async (...args: string[]) => (await run('git', ['-C', project, ...args])).trim();
  const inside = await git('rev-parse', '--show-toplevel').then(
    top => realpathSync(top) === realpathSync(project),
    () => false,
  );
  const seconds = process.env.SOURCE_DATE_EPOCH ?? (inside ? await git('log', '-1', '--format=%ct') : '0');
  const isClean = inside && (await git('status', '--porcelain', '--', ...INPUTS)) === '';
  return {
    version,
    description,
    license,
    created: new Date(Number(seconds) * 1_000).toISOString().replace('.000', ''),
    revision: isClean ? await git('rev-parse', 'HEAD') : undefined,
  };
}
