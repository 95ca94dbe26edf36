import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type TemporaryFolder = { readonly path: string; readonly remove: () => Promise<void> };

/**
 * Removes the folder when the process that made it is gone, however it died: the pipe that it reads ends then. The
 * second lets the children, which die of the same cause, write their last.
 */
const REMOVE_LATER = 'trap "" INT TERM HUP; read -r _ || { sleep 1; rm -rf -- "$1"; }';

/** A new folder under the system's temporary one, gone with `remove()` or with this process. */
export async function temporaryFolder(purpose: string): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), `sluice-${purpose}-`));
  const watcher = spawn('/bin/sh', ['-c', REMOVE_LATER, 'sh', path], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watcher.on('error', () => {});
  watcher.stdin.on('error', () => {});
  watcher.unref();
  // A pipe of a child is a socket underneath; without this an idle process would never end by itself.
  if (watcher.stdin instanceof Socket) watcher.stdin.unref();
  return {
    path,
    remove: async () => {
      await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      watcher.stdin.end('removed\n');
    },
  };
}
