import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const ROOT = join(import.meta.dirname, '..', '..', '..');

/** A child process that runs `make run`, with a separate folder for temporary files. */
export type TourProcess = {
  readonly pid: number;
  /** The folder containing all of its temporary files. */
  readonly folder: string;
  /** Returns its output so far, standard output and standard error. */
  readonly output: () => string;
  /**
   * Waits for the first matching line, including previous lines.
   * @throws with the output if the process ends, or if `withinMs` pass first
   */
  readonly waitForLine: (pattern: RegExp, withinMs: number) => Promise<string>;
  /** The exit code, or the name of the signal. */
  readonly exited: Promise<number | NodeJS.Signals>;
  readonly kill: (signal: NodeJS.Signals) => void;
  /**
   * Returns remaining files in its folder, and processes started by it that are still running. Checks repeatedly for up
   * to 60 s.
   */
  readonly leftovers: () => Promise<string[]>;
  /** Kills the process if it is running, and removes the folder. */
  readonly remove: () => Promise<void>;
};

/** The command of the program. The shell of bin/node is replaced with Node, so the pid belongs to the program. */
const PROGRAM = [join(ROOT, 'bin', 'node'), join(ROOT, 'test', 'support', 'run.ts')];

/** A user's command. The pid belongs to make. */
export const MAKE_RUN = ['make', '--no-print-directory', 'run'];

export async function startTour(
  args: readonly string[] = [],
  [command = '', ...first]: readonly string[] = PROGRAM,
  prefix = 'sluice-tour-',
): Promise<TourProcess> {
  const folder = await mkdtemp(join(tmpdir(), prefix));
  const child = spawn(command, [...first, ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, TMPDIR: folder },
  });
  const lines: string[] = [];
  const watchers = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', line => {
      lines.push(line);
      for (const watch of watchers) watch();
    });
  }
  let ended = false;
  const exited = new Promise<number | NodeJS.Signals>(resolve => {
    child.once('close', (code, signal) => {
      ended = true;
      resolve(signal ?? code ?? 1);
      for (const watch of watchers) watch();
    });
  });
  const output = (): string => lines.join('\n');

  return {
    pid: child.pid ?? 0,
    folder,
    output,
    exited,
    kill: signal => child.kill(signal),
    waitForLine: (pattern, withinMs) =>
      new Promise((resolve, reject) => {
        const end = (settle: () => void): void => {
          clearTimeout(timer);
          watchers.delete(watch);
          settle();
        };
        const fail = (why: string): void =>
          end(() => reject(new Error(`no line with ${pattern}: ${why}. It wrote:\n${output()}`)));
        const watch = (): void => {
          const line = lines.find(each => pattern.test(each));
          if (line !== undefined) end(() => resolve(line));
          else if (ended) fail('the process has ended');
        };
        const timer = setTimeout(fail, withinMs, `${withinMs} ms have passed`);
        watchers.add(watch);
        watch();
      }),
    leftovers: async () => {
      for (let tries = 0; ; tries++) {
        const left = [...(await readdir(folder)), ...(await processesOf(folder))];
        if (left.length === 0 || tries >= 600) return left;
        await new Promise(resolve => setTimeout(resolve, 100));
      }
    },
    remove: async () => {
      if (!ended) child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/**
 * Returns the processes of a folder, based on their arguments, environment, or working directory. Redis overwrites the
 * first two. Without /proc, no processes are found.
 */
export async function processesOf(folder: string): Promise<string[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async pid => {
      const [args, environment, cwd] = await Promise.all([
        readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
        readFile(`/proc/${pid}/environ`, 'utf8').catch(() => ''),
        readlink(`/proc/${pid}/cwd`).catch(() => ''),
      ]);
      const concerns = [args, environment, cwd].some(text => text.includes(folder));
      return concerns ? [`process ${pid}: ${args.replaceAll('\0', ' ')}`] : [];
    }),
  );
  return found.flat();
}
