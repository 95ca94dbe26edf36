import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stopOnSignal } from '../support/stop-signal.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { MUTANTS, type Mutant } from './mutants.ts';
import { runStage, type Stage, stagesOf } from './stage.ts';

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
 * Test files, starting with the quickest one. Each file is only run if the previous files did not detect the mutant. If
 * a mutant specifies a test, only this test is run.
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

const ENV = { STEPS: MODEL_STEPS, SEEDS: PART_SEEDS, SHRINK: 'no' };

let stopTests = () => {};

const runTests = (folder: string, stage: Stage, patienceMs: number) =>
  runStage(folder, stage, {
    patienceMs,
    env: ENV,
    onStart: stop => {
      stopTests = stop;
    },
  });

/** The maximum test duration for each stage. */
const patienceMs: number[] = [];

async function judge(folder: string, mutant: Mutant): Promise<string> {
  const path = join(folder, mutant.file);
  const original = await readFile(path, 'utf8');
  if (original.split(mutant.from).length !== 2) return 'does not fit';
  await writeFile(
    path,
    original.replace(mutant.from, () => mutant.to),
  );
  try {
    const stages = mutant.test === undefined ? STAGES : stagesOf([mutant.test]);
    for (const [i, stage] of stages.entries()) {
      const outcome = await runTests(folder, stage, patienceMs[i] ?? LEAST_PATIENCE_MS);
      if (outcome === 'fail') return 'detected';
      if (outcome === 'take too long') return 'detected (the tests take too long)';
      if (outcome === 'could not be run') return `the tests ${outcome}`;
    }
    return 'survived';
  } finally {
    await writeFile(path, original);
  }
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

const named = [...new Set(wanted.flatMap(({ test }) => test ?? []))];
const first = wanted.every(({ test }) => test !== undefined) ? [] : STAGES;
for (const stage of [...first, ...stagesOf(named)]) {
  const started = performance.now();
  const outcome = await runTests(folder.path, stage, 1_200_000);
  if (first.includes(stage)) patienceMs.push(Math.max(LEAST_PATIENCE_MS, PATIENCE * (performance.now() - started)));
  if (outcome === 'pass') continue;
  console.error(`the tests ${outcome} without any changes: ${stage.join(' ')}`);
  await folder.remove();
  process.exit(1);
}
const left: string[] = [];
for (const [i, mutant] of wanted.entries()) {
  if (i + 1 < from) continue;
  const started = performance.now();
  const verdict = await judge(folder.path, mutant);
  const seconds = ((performance.now() - started) / 1_000).toFixed(0);
  const line = `${mutant.name} (${mutant.file})`;
  console.log(`${i + 1} of ${wanted.length}, ${seconds} s: ${verdict}: ${line}`);
  if (!verdict.startsWith('detected')) left.push(`${verdict}: ${line}`);
}
await folder.remove();
console.log(
  ['', ...left, `${wanted.length - from + 1 - left.length} detected, ${left.length} not detected`].join('\n'),
);
process.exitCode = left.length > 0 ? 1 : 0;
