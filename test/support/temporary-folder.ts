import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runAtEnd } from './cleanup.ts';

export type TemporaryFolder = { readonly path: string; readonly remove: () => Promise<void> };

/** The delay of one second allows the child processes to finish writing. */
const REMOVE = 'sleep 1; rm -rf -- "$1"';

/**
 * Creates a temporary folder, which is deleted by `remove()` or at the end of this process.
 * @param parent defaults to the folder of the system for temporary files
 */
export async function temporaryFolder(purpose: string, parent: string = tmpdir()): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(parent, `sluice-${purpose}-`));
  const cancel = runAtEnd(REMOVE, [path]);
  return {
    path,
    remove: async () => {
      await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      cancel();
    },
  };
}
