import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * Turns on the compile cache for every Node that starts from here, and fills it once. Tests start hundreds of
 * processes, and most are killed before they could write to it.
 */
export async function shareCompiledCode(): Promise<void> {
  process.env.NODE_COMPILE_CACHE ??= join(ROOT, 'node_modules', '.cache', 'compile');
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', "await import('./src/roles/roles.ts')"], {
    cwd: ROOT,
  });
}
