import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type TemporaryFolder = { readonly path: string; readonly remove: () => Promise<void> };

/**
 * Removes the folder when the process that created it has ended, however it died: then the pipe ends. The delay of one
 * second lets its children, which end too, finish writing.
 */
const REMOVE_LATER = 'trap "" INT TERM HUP; read -r _ || { sleep 1; rm -rf -- "$1"; }';

/**
 * Creates a temporary folder that is deleted by `remove()` or at the end of this process.
 *
 * @param parent default: the folder of the system for temporary files
 */
export async function temporaryFolder(purpose: string, parent: string = tmpdir()): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(parent, `sluice-${purpose}-`));
  const watcher = spawn('/bin/sh', ['-c', REMOVE_LATER, 'sh', path], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watcher.on('error', () => {});
  watcher.stdin.on('error', () => {});
  watcher.unref();
  // The pipe of a child is a socket; without this an idle process would never exit.
  if (watcher.stdin instanceof Socket) watcher.stdin.unref();
  return {
    path,
    remove: async () => {
      await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      watcher.stdin.end('removed\n');
    },
  };
}
