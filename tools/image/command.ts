import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/**
 * Thrown if a program required by the build is missing, or if a download has failed. The message explains how to
 * resolve this.
 */
export class CannotBuildError extends Error {}

const PACKAGE_OF: Readonly<Record<string, string>> = {
  'apt-get': 'apt',
  'dpkg-deb': 'dpkg',
  tar: 'tar (GNU)',
  gzip: 'gzip',
  npm: 'npm',
};

/**
 * Runs a program. Returns its standard output. Messages are in English, and names are sorted by their bytes.
 * @throws {CannotBuildError} if the program is missing
 */
export async function run(command: string, args: readonly string[], options: { cwd?: string } = {}): Promise<string> {
  try {
    const env = { ...process.env, LC_ALL: 'C' };
    const { stdout } = await execute(command, args, { ...options, env, maxBuffer: 64 * 1_048_576 });
    return stdout;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new CannotBuildError(`${command} is not on the PATH; install ${PACKAGE_OF[command] ?? command}`, {
      cause: error,
    });
  }
}

/** Returns the standard error output of a failed program, or the error message. */
export function reasonOf(error: unknown): string {
  const { stderr, message } = error as { readonly stderr?: string; readonly message?: string };
  return (stderr?.trim() || message || String(error)).trim();
}
