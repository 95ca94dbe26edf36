import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stopOnSignal } from './stop-signal.ts';
import { addTallies, formatTally, type Tally, tallyCommand, tallyVitest, type VitestReport } from './tally.ts';
import { temporaryFolder } from './temporary-folder.ts';

/**
 * Runs the suites of the arguments, or all, one after the other. The last line is the sum: `N passed, N failed`. The
 * exit code is 0 only if nothing failed.
 */

const ROOT = join(import.meta.dirname, '..', '..');

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  types: ['tsc', '-p', '.'],
  lint: ['oxlint', '--type-aware', '--quiet'],
  format: ['biome', 'check'],
};

const PROJECTS = ['unit', 'redis', 'kube', 'system', 'scale'];

const LONGER = 'Longer, on demand: make bench, make test-api, make test-model, make test-mutants, make test-scale';

let current: ChildProcess | undefined;

/** Runs a program in the project folder with inherited output. @returns its exit code; 128 if a signal ended it */
function run(command: string, args: readonly string[]): Promise<number> {
  return new Promise(resolve => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
    current = child;
    child.once('error', error => {
      console.error(error.message);
      resolve(127);
    });
    child.once('exit', code => resolve(code ?? 128));
  });
}

async function runProject(project: string, folder: string): Promise<Tally> {
  const file = join(folder, `${project}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  const exitCode = await run(process.execPath, [vitest, 'run', '--project', project, ...reporters]);
  const report: VitestReport | undefined = await readFile(file, 'utf8').then(JSON.parse, () => undefined);
  return tallyVitest(project, report, exitCode);
}

async function runSuite(name: string, folder: string): Promise<Tally> {
  console.log(`\n== ${name}`);
  const started = performance.now();
  const [program, ...args] = CHECKS[name] ?? [];
  const tally =
    program === undefined
      ? await runProject(name, folder)
      : tallyCommand(name, await run(join(ROOT, 'node_modules', '.bin', program), args));
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
  current?.kill('SIGTERM');
  await folder.remove();
});
const tallies: Tally[] = [];
for (const name of wanted) tallies.push(await runSuite(name, folder.path));
await folder.remove();

const sum = addTallies(tallies);
console.log(['', ...sum.notes, LONGER, formatTally(sum)].join('\n'));
process.exitCode = sum.failed > 0 ? 1 : 0;
