import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

export type CommandResult = { readonly stdout: string; readonly stderr: string; readonly code: number };

/** Runs kubectl with these arguments. Never throws for a refusal: the exit code and standard error tell. */
export type Kubectl = (args: readonly string[], options?: { stdin?: string }) => Promise<CommandResult>;

/** @param options.cache folder for discovery, so that nothing is read from or left in the user's own */
export function kubectlFor(options: { binary: string; kubeconfig: string; cache: string }): Kubectl {
  return async (args, { stdin } = {}) => {
    const child = spawn(options.binary, [`--cache-dir=${options.cache}`, ...args], {
      // KUBECONFIG rather than a flag: an argument of the caller, such as another --kubeconfig, wins.
      env: { ...process.env, KUBECONFIG: options.kubeconfig },
    });
    const ended = new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', code => resolve(code ?? 1));
    });
    // kubectl may end without reading what it was given; its exit code tells why.
    child.stdin.on('error', () => {});
    child.stdin.end(stdin ?? '');
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { stdout, stderr, code };
  };
}
