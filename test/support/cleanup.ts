import { spawn } from 'node:child_process';
import { Socket } from 'node:net';

/**
 * Runs a command when this process has ended, for any reason. In this case, the pipe ends without a line.
 * @param command for `sh`, with the arguments `$1` and so on
 * @returns a function that cancels the command
 */
export function runAtEnd(command: string, args: readonly string[]): () => void {
  const script = `trap "" INT TERM HUP; read -r _ || { ${command}; }`;
  const watcher = spawn('/bin/sh', ['-c', script, 'sh', ...args], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watcher.on('error', () => {});
  watcher.stdin.on('error', () => {});
  watcher.unref();
  // The pipe of a child is a socket, which would otherwise prevent an idle process from exiting.
  if (watcher.stdin instanceof Socket) watcher.stdin.unref();
  return () => watcher.stdin.end('done\n');
}
