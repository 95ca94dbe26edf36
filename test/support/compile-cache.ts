import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * Lets every Node that is started from here keep what it compiled, and compiles the program once: tests start hundreds of
 * processes, most of which are killed before they could write anything.
 */
export async function shareCompiledCode(): Promise<void> {
  process.env.NODE_COMPILE_CACHE ??= join(ROOT, 'node_modules', '.cache', 'compile');
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', "await import('./src/roles/roles.ts')"], {
    cwd: ROOT,
  });
}
