import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../temporary-folder.ts';

const run = promisify(execFile);

const AUTHOR = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];

export interface GitRepository {
  /** The URL of the repository, `file://<folder>`. */
  readonly url: string;
  /** Writes files by path, removes undefined files, and commits to `main`. @returns the hash of the commit */
  readonly commit: (files: Readonly<Record<string, string | undefined>>) => Promise<string>;
  readonly remove: () => Promise<void>;
}

/** Creates an empty Git repository in a temporary folder. */
export async function createGitRepository(): Promise<GitRepository> {
  const { path: cwd, remove } = await temporaryFolder('git');
  const git = async (...args: string[]) => (await run('git', [...AUTHOR, ...args], { cwd })).stdout.trim();
  await git('init', '--quiet', '--initial-branch=main');
  return {
    url: `file://${cwd}`,
    commit: async files => {
      for (const [path, text] of Object.entries(files)) {
        const file = join(cwd, path);
        await mkdir(dirname(file), { recursive: true });
        await (text === undefined ? rm(file) : writeFile(file, text));
      }
      await git('add', '--all');
      await git('commit', '--quiet', '--message', 'change');
      return git('rev-parse', 'HEAD');
    },
    remove,
  };
}
