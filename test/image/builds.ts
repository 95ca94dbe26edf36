import { execFile } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { copyFiles } from '../support/copy-files.ts';
import { type Example, readExamples } from '../support/tour/readme.ts';

const run = promisify(execFile);

export const ROOT = join(import.meta.dirname, '..', '..');

/** The files read by a build. */
const INPUTS = [
  '.npmrc',
  'LICENSE',
  'Makefile',
  'bin',
  'package.json',
  'package-lock.json',
  'src',
  'test/support/node',
  'tools/cache.ts',
  'tools/image',
];

/** Returns the commands of docs/image.md in order. */
export async function readCommands(): Promise<Example[]> {
  return readExamples(await readFile(join(ROOT, 'docs', 'image.md'), 'utf8'));
}

/** A copy of the project in which the image was built. */
export type Build = {
  readonly folder: string;
  /** The standard output of the build. */
  readonly output: string;
};

/** The line of standard error which contains the reason why this machine cannot build an image. */
const REFUSAL = /^make image: (.+)/m;

/**
 * Copies the project into two folders and builds the image in each, with different umasks and time zones. The first
 * build uses the command in docs/image.md.
 * @returns both builds, or the reason why this machine cannot build an image
 * @throws if a build fails for another reason
 */
export async function buildTwice(parent: string): Promise<readonly [Build, Build] | string> {
  const [first] = await readCommands();
  try {
    return await Promise.all([
      build(join(parent, 'one'), `umask 022; ${first?.commands}`, { TZ: 'UTC' }),
      build(join(parent, 'another', 'folder'), 'umask 077; bin/node tools/image/main.ts', { TZ: 'Asia/Tokyo' }),
    ]);
  } catch (error) {
    const refusal = REFUSAL.exec((error as { readonly stderr?: string }).stderr ?? '')?.[1];
    if (refusal === undefined) throw error;
    return refusal;
  }
}

async function build(folder: string, command: string, variables: NodeJS.ProcessEnv): Promise<Build> {
  await copyFiles(ROOT, INPUTS, folder);
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  // The copies do not include git, which would provide the commit time. If this process was started by make, another
  // make would print its folder.
  const env = { ...process.env, ...variables, SOURCE_DATE_EPOCH: '1700000000', MAKEFLAGS: '', MAKELEVEL: undefined };
  const { stdout } = await run('sh', ['-ec', command], { cwd: folder, env, maxBuffer: 16 * 1_048_576 });
  return { folder, output: stdout };
}
