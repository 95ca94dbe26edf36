import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { GOGC } from '../kubernetes/kubectl.ts';

export interface Promtool {
  /** Runs promtool in a temporary folder with `files` (text by name). */
  readonly run: (args: readonly string[], files: Readonly<Record<string, string>>) => { ok: boolean; output: string };
}

/** Finds promtool: `PROMTOOL`, the PATH, or the version installed by `make setup`. Undefined if it is not available. */
export function findPromtool(env: NodeJS.ProcessEnv = process.env): Promtool | undefined {
  const command = findProgram('promtool', env);
  return command === undefined ? undefined : { run: (args, files) => run(command, args, files) };
}

/** Finds a program of Prometheus: a variable such as `PROMTOOL`, the PATH, or the version installed by `make setup`. */
export function findProgram(name: 'promtool' | 'prometheus', env: NodeJS.ProcessEnv = process.env): string | undefined {
  const folders = (env['PATH'] ?? '').split(delimiter);
  const cache = env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const places = [...folders.map(folder => join(folder, name)), join(cache, 'sluice', 'prometheus', name)];
  return env[name.toUpperCase()] ?? places.find(existsSync);
}

function run(command: string, args: readonly string[], files: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-promtool-'));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const { status, stdout, stderr, error } = spawnSync(command, args, {
      cwd: folder,
      encoding: 'utf8',
      env: { GOGC, ...process.env },
    });
    return { ok: status === 0, output: `${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}` };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
