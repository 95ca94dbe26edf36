import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type ChildProcess = {
  readonly pid: number;
  /** The path of the log, to which standard output and standard error are appended. */
  readonly log: string;
  /** Resolves when the process has ended and never rejects. */
  readonly exited: Promise<Exit>;
  readonly running: () => boolean;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Sends SIGTERM, and SIGKILL after `graceMs` (defaults to 5,000). Resolves when the process has ended. */
  readonly stop: (graceMs?: number) => Promise<void>;
  readonly logTail: (lines?: number) => Promise<string>;
};

/**
 * Starts a watcher and then becomes the child using `exec`, which keeps the pid. The watcher reads a pipe whose other
 * end only the parent holds. A line means that the child has ended. End of file means that the parent has ended, for
 * any reason. In subshells, `$$` is also the pid of the first shell (POSIX). The double fork prevents the watcher from
 * being a child of the child.
 */
const GUARDED = '( ( read -r _ <&3 || kill -KILL $$ ) >/dev/null 2>&1 & ); exec 3<&-; exec "$@"';

/**
 * Starts a program that is stopped together with this process, even if this process is killed with SIGKILL. It runs in
 * a separate session: Ctrl-C in a terminal is only sent to the parent, which then stops its children in order.
 * @param options.log file for the output, to which a restarted program appends
 * @throws if the program cannot be started (an unknown command exits with 127 and a line in the log)
 */
export function startChild(options: {
  command: string;
  args: readonly string[];
  log: string;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
}): ChildProcess {
  const output = openSync(options.log, 'a');
  const child = spawn('/bin/sh', ['-c', GUARDED, 'sh', options.command, ...options.args], {
    stdio: ['ignore', output, output, 'pipe'],
    detached: true,
    env: options.env ?? process.env,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  closeSync(output);
  const { pid } = child;
  if (pid === undefined) throw new Error(`cannot start a shell for ${options.command}`);

  const guard = child.stdio[3];
  if (!(guard instanceof Writable)) throw new Error('the pipe to the watcher cannot be written');
  // The watcher may end with the group of a killed child, so the broken pipe is ignored.
  guard.on('error', () => {});
  let ended = false;
  const exited = new Promise<Exit>(resolve => {
    child.once('exit', (code, signal) => {
      ended = true;
      guard.end('ended\n');
      resolve({ code, signal });
    });
    child.once('error', () => resolve({ code: 127, signal: null }));
  });
  const kill = (signal: NodeJS.Signals): void => {
    if (!ended) child.kill(signal);
  };

  return {
    pid,
    log: options.log,
    exited,
    running: () => !ended,
    kill,
    stop: async (graceMs = 5_000) => {
      kill('SIGTERM');
      const patience = new AbortController();
      const grace = delay(graceMs, undefined, { signal: patience.signal }).then(
        () => kill('SIGKILL'),
        () => {},
      );
      await exited;
      patience.abort();
      await grace;
    },
    logTail: async (lines = 30) => {
      const text = await readFile(options.log, 'utf8').catch(() => '');
      return text.trimEnd().split('\n').slice(-lines).join('\n');
    },
  };
}

/**
 * Waits until `probe` resolves to true, calling it every `everyMs`. A probe that throws is treated as false.
 * @throws if `child` ends or `deadlineMs` passes first. The message contains the end of the log
 */
export async function waitUntilReady(
  child: ChildProcess,
  probe: () => Promise<boolean>,
  options: { name: string; deadlineMs: number; everyMs?: number },
): Promise<void> {
  const deadline = performance.now() + options.deadlineMs;
  for (;;) {
    if (await probe().catch(() => false)) return;
    const ended = !child.running();
    if (ended || performance.now() > deadline) {
      const how = ended
        ? `ended before it was ready (${describe(await child.exited)})`
        : `was not ready within ${options.deadlineMs / 1_000} s`;
      throw new Error(`${options.name} ${how}; the end of its log:\n${await child.logTail()}`);
    }
    await delay(options.everyMs ?? 100);
  }
}

function describe({ code, signal }: Exit): string {
  return signal === null ? `exit code ${code}` : signal;
}
