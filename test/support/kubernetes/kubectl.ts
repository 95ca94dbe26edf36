import { type ChildProcess, spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/**
 * The percentage of its heap that a program can allocate before collecting garbage. The default (100) collects more
 * often.
 */
export const GOGC = '400';

export type CommandResult = { readonly stdout: string; readonly stderr: string; readonly code: number };

/** Runs kubectl with these arguments. A refusal does not throw, so check the exit code and standard error. */
export type Kubectl = (args: readonly string[], options?: { stdin?: string }) => Promise<CommandResult>;

/** The commands in progress, which end with this process. A `kubectl wait` could take another minute. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** @param options.cache folder for discovery, instead of the folder of the user */
export function kubectlFor(options: { binary: string; kubeconfig: string; cache: string }): Kubectl {
  return async (args, { stdin } = {}) => {
    const child = spawn(options.binary, [`--cache-dir=${options.cache}`, ...args], {
      // Uses KUBECONFIG instead of a flag so that arguments of the caller, such as another --kubeconfig, take
      // precedence.
      env: { GOGC, ...process.env, KUBECONFIG: options.kubeconfig },
    });
    running.add(child);
    child.once('close', () => running.delete(child));
    const ended = new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', code => resolve(code ?? 1));
    });
    // kubectl may end without reading its input; its exit code shows why.
    child.stdin.on('error', () => {});
    child.stdin.end(stdin ?? '');
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { stdout, stderr, code };
  };
}
