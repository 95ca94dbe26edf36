import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GOGC } from '../kubernetes/kubectl.ts';
import { nodeRefusal } from '../node-cluster/requirements.ts';
import { stopOnSignal } from '../stop-signal.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import {
  addTallies,
  filesToRepeat,
  formatTally,
  type Tally,
  tallyCommand,
  tallyRepeated,
  tallySkipped,
  tallyVitest,
  type VitestReport,
  type VitestRun,
} from './tally.ts';
import { UNHANDLED_FILE } from './unhandled-errors.ts';

/**
 * Runs the specified suites (or all suites) sequentially, except for suites that run at the same time as others: see
 * `BESIDE`. `all` means all suites except for `node`, the short version of `make test-node`. It is run if there were no
 * failures before it starts, and the machine is able to run a node. The last line is the sum: `N passed, N failed`. The
 * exit code is only 0 if there were no failures.
 */

const ROOT = join(import.meta.dirname, '..', '..', '..');

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  // By default, each of four threads checks the types of the libraries again.
  types: ['tsc', '-p', '.', '--checkers', '1'],
  // Warnings are for editors. With --quiet, oxlint does not search for them.
  lint: ['oxlint', '--type-aware', '--quiet', '--allow=suspicious'],
  format: ['biome', 'check'],
};

/** `tsc` and the part of `oxlint` that reads types are written in Go. */
const CHECK_ENV = { GOGC: process.env['GOGC'] ?? GOGC };

/** The solution for the problems that a check reports, if it is a command. */
const REMEDIES: Readonly<Record<string, string>> = { format: 'Run `make format`' };

const PROJECTS = ['unit', 'slow', 'redis', 'chart', 'kube', 'image', 'site', 'system', 'waiting', 'scale'];

/** The file of the short version of `make test-node`. */
const SHORT_NODE = 'test/node/install.test.ts';

/**
 * Suites that start together with the first of these other suites and are printed in their own order. `types` uses one
 * core. Some files of `unit` wait for timers, and the last file of `slow` leaves a core idle. `waiting` uses only a
 * small part of the machine. `chart` and `kube` wait for their API servers, and `image` and `site` use the machine in
 * the meantime. `node` waits for a kubelet and for Pods. `redis` contains tests that need most of the machine, such as
 * the failover of a Cluster.
 */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  lint: ['types'],
  slow: ['unit'],
  waiting: ['redis', 'chart', 'system'],
  kube: ['chart'],
  image: ['chart'],
  site: ['chart'],
  node: ['system'],
};

/** The suite that requires the whole machine. It waits until those beside others have ended. */
const ALONE = 'scale';

const LONGER =
  'Longer, on demand: make bench, make test-api, make test-chaos, make test-gitops, make test-hostile, make test-limits, make test-model, make test-mutants, make test-node, make test-outages, make test-scale';

interface Result {
  readonly tally: Tally;
  readonly tookMs: number;
}

const running = new Set<ChildProcess>();

/**
 * Runs a program in the project folder.
 * @param options `output`: file descriptor, which defaults to the output of this process; `env`: additional environment
 * variables
 * @returns its exit code, or 128 if it was ended by a signal
 */
function run(
  command: string,
  args: readonly string[],
  { output = 'inherit', env = {} }: { output?: 'inherit' | number | undefined; env?: Record<string, string> } = {},
): Promise<number> {
  return new Promise(resolve => {
    const child = spawn(command, args, {
      cwd: ROOT,
      stdio: ['ignore', output, output],
      env: { ...process.env, ...env },
    });
    running.add(child);
    child.once('error', error => {
      console.error(error.message);
      resolve(127);
    });
    child.once('exit', code => {
      running.delete(child);
      resolve(code ?? 128);
    });
  });
}

async function runVitest(project: string, output?: number, files: readonly string[] = []): Promise<VitestRun> {
  const file = join(folder.path, `${project}.json`);
  const unhandled = join(folder.path, `${project}.errors`);
  await Promise.all([file, unhandled].map(each => rm(each, { force: true })));
  const reporters = ['default', 'json', join(import.meta.dirname, 'unhandled-errors.ts')];
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const options = [...reporters.map(each => `--reporter=${each}`), `--outputFile.json=${file}`];
  const exitCode = await run(process.execPath, [vitest, 'run', '--project', project, ...files, ...options], {
    output,
    env: { [UNHANDLED_FILE]: unhandled },
  });
  const report: VitestReport | undefined = await readFile(file, 'utf8').then(JSON.parse, () => undefined);
  const errors = await readFile(unhandled, 'utf8').catch(() => '');
  return { report, exitCode, errors: errors.split('\n').filter(Boolean) };
}

/** Runs a suite. Files that fail are run once more because other processes may have delayed them. */
async function runProject(project: string, output?: number, files?: readonly string[]): Promise<Tally> {
  const first = await runVitest(project, output, files);
  const failed = filesToRepeat(first);
  if (failed.length === 0) return tallyVitest(project, first.report, first);
  return tallyRepeated(project, first, await runVitest(project, output, failed));
}

async function runNode(output?: number): Promise<Tally> {
  const isFailed = addTallies(tallies).failed > 0;
  const reason = isFailed ? 'another suite failed' : nodeRefusal();
  if (reason === undefined) return runProject('node', output, [SHORT_NODE]);
  return tallySkipped('node', `${reason}. Sluice was not installed on a real node`);
}

/** Runs a suite. Its output is written to a file descriptor, or to the output of this process. */
async function runOne(name: string, output?: number): Promise<Result> {
  const started = performance.now();
  const [program, ...args] = CHECKS[name] ?? [];
  let tally: Tally;
  if (program !== undefined) {
    const exitCode = await run(join(ROOT, 'node_modules', '.bin', program), args, { output, env: CHECK_ENV });
    tally = tallyCommand(name, exitCode, REMEDIES[name]);
  } else tally = name === 'node' ? await runNode(output) : await runProject(name, output);
  return { tally, tookMs: performance.now() - started };
}

/** Runs a suite and stores its output. Returns a function that prints it. */
async function runUnseen(name: string): Promise<() => Promise<Result>> {
  const log = join(folder.path, `${name}.log`);
  const output = await open(log, 'w');
  const result = await runOne(name, output.fd);
  await output.close();
  return async () => {
    console.log(await readFile(log, 'utf8'));
    return result;
  };
}

async function runSuite(name: string): Promise<Tally> {
  console.log(`\n== ${name}`);
  const { tally, tookMs } = await (begun.get(name) ?? (() => runOne(name)))();
  console.log(`== ${name}: ${formatTally(tally)} (${(tookMs / 1_000).toFixed(1)} s)`);
  return tally;
}

const all = [...Object.keys(CHECKS), ...PROJECTS];
const known = [...all, 'node', 'all'];
const given = process.argv.length > 2 ? process.argv.slice(2) : ['all'];
const wanted = given.flatMap(name => (name === 'all' ? all : [name]));
const unknown = given.filter(name => !known.includes(name));
if (unknown.length > 0) {
  console.error(`unknown suite ${unknown.join(', ')}; use ${known.join(', ')}`);
  process.exit(2);
}

const folder = await temporaryFolder('results');
stopOnSignal(async () => {
  for (const child of running) child.kill('SIGTERM');
  await folder.remove();
});
/** Suites running at the same time as others, and functions that wait for them. */
const begun = new Map<string, () => Promise<Result>>();
const unseen: Promise<unknown>[] = [];
const tallies: Tally[] = [];
for (const [i, name] of wanted.entries()) {
  for (const [suite, others] of Object.entries(BESIDE)) {
    if (!others.includes(name) || begun.has(suite) || wanted.indexOf(suite) < i) continue;
    const ended = runUnseen(suite);
    unseen.push(ended);
    begun.set(suite, async () => (await ended)());
  }
  if (name === ALONE) await Promise.all(unseen);
  tallies.push(await runSuite(name));
}
await folder.remove();

const sum = addTallies(tallies);
console.log(['', ...sum.notes, LONGER, formatTally(sum)].join('\n'));
process.exitCode = sum.failed > 0 ? 1 : 0;
