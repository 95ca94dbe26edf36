import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { KINDS, type KindName } from '../../src/api/kinds/kinds.ts';

export const ROOT = join(import.meta.dirname, '..', '..');

/** The folder of generated files for Argo CD. */
export const ARGOCD = join(ROOT, 'config', 'argocd');

export const KIND_NAMES = Object.keys(KINDS) as KindName[];

/** Runs a program and returns its standard output. @throws with its standard error if it fails */
export async function runProgram(command: string, args: readonly string[], stdin = ''): Promise<string> {
  const child = spawn(command, args);
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', error => reject(new Error(`cannot run ${command}; run make test-gitops`, { cause: error })));
    child.once('close', code => resolve(code ?? 1));
  });
  child.stdin.on('error', () => {});
  child.stdin.end(stdin);
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0) throw new Error(`${command} failed: ${stderr}`);
  return stdout;
}

/** Sends objects to a program as lines of JSON. Returns the responses of the program. */
export async function judge<Verdict>(
  command: string,
  args: readonly string[],
  objects: readonly object[],
): Promise<Verdict[]> {
  const lines = await runProgram(command, args, objects.map(object => `${JSON.stringify(object)}\n`).join(''));
  return lines
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Verdict);
}
