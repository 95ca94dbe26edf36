import { globSync } from 'node:fs';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stopOnSignal } from '../support/stop-signal.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { Mutant } from './mutant.ts';
import { MUTANTS } from './mutants.ts';
import { projectOf, runStage, type Stage, stagesOf } from './stage.ts';

/**
 * Applies one mutant at a time to a copy of the project and runs the quick tests that should detect it. Prints the
 * mutants that were not detected, and exits with 0 if there are none. Arguments are words that the name or the file of
 * a mutant must contain. Set the environment variable FROM=20 to begin with the twentieth mutant.
 */

const ROOT = join(import.meta.dirname, '..', '..');
const COPIED = ['src', 'test', 'tools', 'config', 'crds', 'docs', 'package.json', 'tsconfig.json', 'vitest.config.ts'];
/** A mutant is detected if the tests take this many times longer than without a change. */
const PATIENCE = 5;
/** On a shared machine, everything may stall for a minute, which does not mean that the mutant was detected. */
const LEAST_PATIENCE_MS = 300_000;

/**
 * Test files, starting with the quickest ones. They are only run if the tests in the folder of the mutant and the
 * previous stages did not detect the mutant. If a mutant specifies a test, only this test is run.
 */
const STAGES: readonly Stage[] = [
  ['unit', 'src/core', 'src/redis', 'src/record', 'src/controller/engine', 'src/dataplane/due-loop.test.ts'],
  ['redis', 'src/part', 'test/part'],
  ['redis', 'src/redis', 'src/idempotency', 'src/hints', 'src/series', 'src/record'],
  ['redis', 'src/dataplane/parts', 'src/controller/routes', 'src/controller/audit'],
  ['redis', 'test/model'],
];
const MODEL_STEPS = '3000';
const PART_SEEDS = '20';
const PART_HISTORIES = '120';
const LEDGER_RUNS = '40';

const ENV = { STEPS: MODEL_STEPS, SEEDS: PART_SEEDS, HISTORIES: PART_HISTORIES, RUNS: LEDGER_RUNS, SHRINK: 'no' };

let stopTests = () => {};

const runTests = (folder: string, stage: Stage, patienceMs: number) =>
  runStage(folder, stage, {
    patienceMs,
    env: ENV,
    onStart: stop => {
      stopTests = stop;
    },
  });

/** Returns the stages of the tests in the folder of a mutant. Unit tests do not run Lua scripts. */
function stagesBeside(file: string): Stage[] {
  const beside = `${dirname(file)}/`;
  const projects = new Set(globSync(`${beside}**/*.test.ts`, { cwd: ROOT }).map(projectOf));
  const run = file.endsWith('.lua') ? (['redis'] as const) : (['unit', 'slow', 'redis'] as const);
  return run.filter(project => projects.has(project)).map(project => [project, beside]);
}

/** The maximum test duration of each stage that was run without a mutant. */
const patiences = new Map<string, number>();

/** Runs a stage without a mutant once. Returns how long it can take with a mutant. */
async function patienceOf(folder: string, stage: Stage): Promise<number> {
  const name = stage.join(' ');
  const known = patiences.get(name);
  if (known !== undefined) return known;
  const started = performance.now();
  const { outcome, failure = '' } = await runTests(folder, stage, 1_200_000);
  if (outcome !== 'pass') throw new Error(`the tests ${outcome} without any changes: ${name} ${failure}`);
  const patienceMs = Math.max(LEAST_PATIENCE_MS, PATIENCE * (performance.now() - started));
  patiences.set(name, patienceMs);
  return patienceMs;
}

async function judge(folder: string, mutant: Mutant): Promise<string> {
  const path = join(folder, mutant.file);
  const original = await readFile(path, 'utf8');
  if (original.split(mutant.from).length !== 2) return 'does not fit';
  const changed = original.replace(mutant.from, () => mutant.to);
  const stages = mutant.test === undefined ? [...stagesBeside(mutant.file), ...STAGES] : stagesOf([mutant.test]);
  for (const stage of stages) {
    const patienceMs = await patienceOf(folder, stage);
    await writeFile(path, changed);
    const { outcome, failure } = await runTests(folder, stage, patienceMs);
    await writeFile(path, original);
    if (outcome === 'fail') return `detected by ${failure?.replace(`${folder}/`, '')}`;
    if (outcome === 'take too long') return 'detected (the tests take too long)';
    if (outcome === 'could not be run') return 'prevents the tests from being run';
  }
  return 'survived';
}

const words = process.argv.slice(2);
const from = Number(process.env['FROM'] || 1);
const wanted = MUTANTS.filter(({ name, file }) => words.every(word => `${name} ${file}`.includes(word)));
const folder = await temporaryFolder('mutants');
stopOnSignal(async () => {
  stopTests();
  await folder.remove();
});
for (const name of COPIED) await cp(join(ROOT, name), join(folder.path, name), { recursive: true });
await symlink(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));

const left: string[] = [];
for (const [i, mutant] of wanted.entries()) {
  if (i + 1 < from) continue;
  const started = performance.now();
  const verdict = await judge(folder.path, mutant).catch(async (error: unknown) => {
    await folder.remove();
    throw error;
  });
  const seconds = ((performance.now() - started) / 1_000).toFixed(0);
  const line = `${mutant.name} (${mutant.file})`;
  console.log(`${i + 1} of ${wanted.length}, ${seconds} s: ${line} ${verdict}`);
  if (!verdict.startsWith('detected')) left.push(`${line} ${verdict}`);
}
await folder.remove();
console.log(
  ['', ...left, `${wanted.length - from + 1 - left.length} detected, ${left.length} not detected`].join('\n'),
);
process.exitCode = left.length > 0 ? 1 : 0;
