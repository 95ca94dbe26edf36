import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeRefusal } from './node-cluster/requirements.ts';
import { stopOnSignal } from './stop-signal.ts';
import {
  addTallies,
  formatTally,
  type Tally,
  tallyCommand,
  tallySkipped,
  tallyVitest,
  type VitestReport,
} from './tally.ts';
import { temporaryFolder } from './temporary-folder.ts';

/**
 * Runs the suites of the arguments, or all. Those that wait for most of their time run beside the others.
 * `all` stands for all of them but `node`, the short form of `make test-node`. It runs if nothing has failed, and the
 * machine can run a node.
 * The last line is the sum: `N passed, N failed`. The exit code is 0 only if nothing failed.
 */

const ROOT = join(import.meta.dirname, '..', '..');

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  types: ['tsc', '-p', '.'],
  lint: ['oxlint', '--type-aware', '--quiet'],
  format: ['biome', 'check'],
};

const PROJECTS = ['unit', 'redis', 'system', 'waiting', 'kube', 'chart', 'image', 'scale'];

/** The file of the short form of `make test-node`. */
const SHORT_NODE = 'test/node/install.test.ts';

/**
 * Suites that leave much of the machine to others. Each lane runs beside them from the suite `redis` on, its suites one
 * after the other. `scale` needs all of the machine: it waits for them.
 */
const LANES = [['waiting'], ['kube', 'chart', 'image']];

const LONGER =
  'Longer, on demand: make bench, make test-api, make test-gitops, make test-model, make test-mutants, make test-node, make test-outages, make test-scale';

type Timed = { readonly tally: Tally; readonly seconds: number };

const running = new Set<ChildProcess>();
/** Suites that were begun in a lane. */
const begun = new Map<string, () => Promise<Timed>>();

/**
 * Runs a program in the project folder.
 *
 * @param output file descriptor. Default: the output of this process
 * @returns its exit code; 128 if a signal ended it
 */
function run(command: string, args: readonly string[], output: 'inherit' | number = 'inherit'): Promise<number> {
  return new Promise(resolve => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', output, output] });
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

async function runProject(project: string, output?: number, files: readonly string[] = []): Promise<Tally> {
  const file = join(folder.path, `${project}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const exitCode = await run(process.execPath, [vitest, 'run', '--project', project, ...files, ...reporters], output);
  const report: VitestReport | undefined = await readFile(file, 'utf8').then(JSON.parse, () => undefined);
  return tallyVitest(project, report, exitCode);
}

/** Begins the suites of a lane that are wanted. Their output is kept until it is their turn. */
function startLane(lane: readonly string[]): void {
  let last: Promise<unknown> = Promise.resolve();
  for (const name of lane.filter(each => wanted.includes(each))) {
    const log = join(folder.path, `${name}.log`);
    const begin = async () => {
      const output = await open(log, 'w');
      const ended = await timed(runProject(name, output.fd));
      await output.close();
      return ended;
    };
    const ended = last.then(begin);
    last = ended;
    begun.set(name, async () => {
      const result = await ended;
      console.log(await readFile(log, 'utf8'));
      return result;
    });
  }
}

async function timed(running: Promise<Tally>): Promise<Timed> {
  const beganMs = performance.now();
  const tally = await running;
  return { tally, seconds: (performance.now() - beganMs) / 1_000 };
}

async function runNode(): Promise<Tally> {
  const isFailed = addTallies(tallies).failed > 0;
  const reason = isFailed ? 'another suite failed' : nodeRefusal();
  if (reason === undefined) return runProject('node', undefined, [SHORT_NODE]);
  return tallySkipped('node', `${reason}. Sluice was not installed on a real node`);
}

async function runSuite(name: string): Promise<Tally> {
  console.log(`\n== ${name}`);
  const { tally, seconds } = (await begun.get(name)?.()) ?? (await timed(runHere(name)));
  console.log(`== ${name}: ${formatTally(tally)} (${seconds.toFixed(1)} s)`);
  return tally;
}

async function runHere(name: string): Promise<Tally> {
  const [program, ...args] = CHECKS[name] ?? [];
  if (program !== undefined) return tallyCommand(name, await run(join(ROOT, 'node_modules', '.bin', program), args));
  return name === 'node' ? runNode() : runProject(name);
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
const tallies: Tally[] = [];
for (const name of wanted) {
  if (name === 'redis') for (const lane of LANES) startLane(lane);
  tallies.push(await runSuite(name));
}
await folder.remove();

const sum = addTallies(tallies);
console.log(['', ...sum.notes, LONGER, formatTally(sum)].join('\n'));
process.exitCode = sum.failed > 0 ? 1 : 0;
