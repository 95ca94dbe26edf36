import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** A program that the build needs is missing, or a download failed. The message says what to do. */
export class CannotBuildError extends Error {}

const PACKAGE_OF: Readonly<Record<string, string>> = {
  'apt-get': 'apt',
  'dpkg-deb': 'dpkg',
  tar: 'tar (GNU)',
  gzip: 'gzip',
  npm: 'npm',
};

/**
 * Runs a program and returns its standard output. Messages are in English, and names sorted by their bytes.
 *
 * @throws {CannotBuildError} if the program is missing
 */
export async function run(command: string, args: readonly string[], options: { cwd?: string } = {}): Promise<string> {
  try {
    const env = { ...process.env, LC_ALL: 'C' };
    const { stdout } = await execute(command, args, { ...options, env, maxBuffer: 64 * 1_048_576 });
    return stdout;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new CannotBuildError(`${command} is not on PATH; install ${PACKAGE_OF[command] ?? command}`, {
      cause: error,
    });
  }
}

/** Returns the text that a failed program wrote to standard error, or the message of the error. */
export function reasonOf(error: unknown): string {
  const { stderr, message } = error as { readonly stderr?: string; readonly message?: string };
  return (stderr?.trim() || message || String(error)).trim();
}
