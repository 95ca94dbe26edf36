import { type ChildProcess, spawn } from 'node:child_process';
import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stopOnSignal } from './stop-signal.ts';
import { addTallies, formatTally, type Tally, tallyCommand, tallyVitest, type VitestReport } from './tally.ts';
import { temporaryFolder } from './temporary-folder.ts';

/**
 * Runs the suites of the arguments, or all, one after the other; the patient files of `system` run beside them. The last
 * line is the sum: `N passed, N failed`. The exit code is 0 only if nothing failed.
 */

const ROOT = join(import.meta.dirname, '..', '..');

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  types: ['tsc', '-p', '.'],
  lint: ['oxlint', '--type-aware', '--quiet'],
  format: ['biome', 'check'],
};

const PROJECTS = ['unit', 'redis', 'kube', 'system', 'scale'];

const LONGER = 'Longer, on demand: make bench, make test-api, make test-model, make test-mutants, make test-scale';

/** Files of `system` that wait for most of their time: for a pass of the audit, a timeout, an idle minute. */
const PATIENT = [
  'control/converge',
  'control/deletion',
  'control/paused',
  'delivery/backlog',
  'delivery/delivery-status',
  'failure/drift',
  'failure/leaders',
  'failure/redis-away',
  'failure/term-without-redis',
].map(name => join('test', 'system', `${name}.test.ts`));

const running = new Set<ChildProcess>();

/** Runs a program in the project folder. @returns its exit code; 128 if a signal ended it */
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

/** Runs a project with further arguments, such as its files. The output goes to `output`, default: to the terminal. */
async function runProject(project: string, args: readonly string[] = [], output?: number): Promise<Tally> {
  const file = join(folder.path, `${project}-${output ?? 'all'}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const exitCode = await run(process.execPath, [vitest, 'run', '--project', project, ...reporters, ...args], output);
  const report: VitestReport | undefined = await readFile(file, 'utf8').then(JSON.parse, () => undefined);
  return tallyVitest(project, report, exitCode);
}

/** Runs the patient files; the output is printed by `end`. */
async function beginPatient(): Promise<{ readonly end: () => Promise<Tally> }> {
  const log = join(folder.path, 'patient.log');
  const output = await open(log, 'w');
  const tally = runProject('system', ['--maxWorkers=3', ...PATIENT], output.fd);
  return {
    end: async () => {
      const ended = await tally;
      await output.close();
      console.log(await readFile(log, 'utf8'));
      return ended;
    },
  };
}

/** Runs the files of `system` that are not patient. */
async function runImpatient(): Promise<Tally> {
  const paths = (await readdir(join(ROOT, 'test'), { recursive: true })).map(path => join('test', path));
  const files = paths.filter(path => /^test\/(system|e2e)\/.*\.test\.ts$/.test(path) && !PATIENT.includes(path));
  return runProject('system', files);
}

async function runSuite(name: string): Promise<Tally> {
  console.log(`\n== ${name}`);
  const started = performance.now();
  const [program, ...args] = CHECKS[name] ?? [];
  let tally: Tally;
  if (program !== undefined) tally = tallyCommand(name, await run(join(ROOT, 'node_modules', '.bin', program), args));
  else if (name === 'system') tally = addTallies([await runImpatient(), await (await patient()).end()]);
  else tally = await runProject(name);
  console.log(`== ${name}: ${formatTally(tally)} (${((performance.now() - started) / 1_000).toFixed(1)} s)`);
  return tally;
}

const known = [...Object.keys(CHECKS), ...PROJECTS];
const wanted = process.argv.length > 2 ? process.argv.slice(2) : known;
const unknown = wanted.filter(name => !known.includes(name));
if (unknown.length > 0) {
  console.error(`unknown suite ${unknown.join(', ')}; use ${known.join(', ')}`);
  process.exit(2);
}

const folder = await temporaryFolder('results');
stopOnSignal(async () => {
  for (const child of running) child.kill('SIGTERM');
  await folder.remove();
});
let begun: ReturnType<typeof beginPatient> | undefined;
const patient = () => (begun ??= beginPatient());
const tallies: Tally[] = [];
for (const name of wanted) {
  // The checks and `unit` take all cores, for less than a minute.
  if (wanted.includes('system') && ['redis', 'kube', 'system'].includes(name)) await patient();
  tallies.push(await runSuite(name));
}
await folder.remove();

const sum = addTallies(tallies);
console.log(['', ...sum.notes, LONGER, formatTally(sum)].join('\n'));
process.exitCode = sum.failed > 0 ? 1 : 0;
