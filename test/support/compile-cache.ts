import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..');

/** Loads all modules of `bin/sluice` without running it. Each process only loads its own roles. */
const LOAD_EVERYTHING = `
import { ROLES } from './src/config/config.ts';
import { loadRoles } from './src/roles/roles.ts';
await loadRoles(ROLES);
`;

/**
 * Enables the compile cache for all Node processes that are started from here, and fills it once. Tests start hundreds
 * of processes, and most of them are killed before they could write to it.
 */
export async function shareCompiledCode(): Promise<void> {
  process.env.NODE_COMPILE_CACHE ??= join(ROOT, 'node_modules', '.cache', 'compile');
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', LOAD_EVERYTHING], { cwd: ROOT });
}
