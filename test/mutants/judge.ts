import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProjectCopy } from './copy.ts';
import type { Mutant } from './mutant.ts';
import { type Result, type Stage, stagesBeside, stagesOf } from './stage.ts';

/** A mutant is detected if the tests take this many times longer than without a change. */
const PATIENCE = 5;
/** On a shared machine, everything may stall for a minute, which does not mean that the mutant was detected. */
const LEAST_PATIENCE_MS = 300_000;
const BASELINE_PATIENCE_MS = 1_200_000;

/**
 * Test files, starting with the quickest ones. They are only run if the tests in the folder of the mutant did not detect
 * the mutant. This takes minutes, so name the test of such a mutant.
 */
const STAGES: readonly Stage[] = [
  ['unit', 'src/core', 'src/redis', 'src/record', 'src/controller/engine', 'src/dataplane/due-loop.test.ts'],
  ['redis', 'test/part/random'],
  ['redis', 'src/part', 'test/part'],
  ['redis', 'src/redis', 'src/idempotency', 'src/hints', 'src/series', 'src/record'],
  ['redis', 'src/dataplane/parts', 'src/controller/routes', 'src/controller/audit'],
  ['redis', 'test/model'],
];

/** How long each stage can take with a mutant, by its name: see `patienceOf`. */
export type Baselines = Map<string, Promise<number>>;

function defaultStages(root: string, file: string): readonly Stage[] {
  // Unit tests do not run Lua scripts.
  const others = STAGES.filter(([project]) => !file.endsWith('.lua') || project === 'redis');
  return [...stagesBeside(root, file), ...others];
}

async function baselineOf(copy: ProjectCopy, stage: Stage): Promise<number> {
  const started = performance.now();
  const { outcome, failure = '' } = await copy.run(stage, BASELINE_PATIENCE_MS);
  if (outcome !== 'pass') throw new Error(`its tests ${outcome} without any changes: ${stage.join(' ')} ${failure}`);
  return Math.max(LEAST_PATIENCE_MS, PATIENCE * (performance.now() - started));
}

/**
 * Runs a stage without a mutant once, in any of the copies. Returns how long it can take with a mutant. If its tests fail,
 * which may be because of other work on the machine, they are run again for the next mutant.
 */
function patienceOf(copy: ProjectCopy, stage: Stage, baselines: Baselines): Promise<number> {
  const name = stage.join(' ');
  const known = baselines.get(name);
  if (known !== undefined) return known;
  const baseline = baselineOf(copy, stage);
  baselines.set(name, baseline);
  baseline.catch(() => baselines.delete(name));
  return baseline;
}

/**
 * Applies a mutant to a copy of the project and runs the test that should detect it. By default, these are the tests in
 * its folder, followed by the quick tests of all parts.
 *
 * @returns a verdict, which starts with `detected` if a test has failed
 * @throws if the tests fail without the mutant
 */
export async function judge(copy: ProjectCopy, mutant: Mutant, baselines: Baselines): Promise<string> {
  const path = join(copy.path, mutant.file);
  const original = await readFile(path, 'utf8');
  if (original.split(mutant.from).length !== 2) return 'does not fit';
  const changed = original.replace(mutant.from, () => mutant.to);
  const stages = mutant.test === undefined ? defaultStages(copy.path, mutant.file) : stagesOf([mutant.test]);
  for (const stage of stages) {
    const patienceMs = await patienceOf(copy, stage, baselines);
    const { outcome, failure } = await runChanged({ path, original, changed }, () => copy.run(stage, patienceMs));
    if (outcome === 'fail') return `detected by ${failure?.replace(`${copy.path}/`, '')}`;
    if (outcome === 'take too long') return 'detected (the tests take too long)';
    if (outcome === 'could not be run') return 'prevents the tests from being run';
  }
  return 'survived';
}

/** Runs the tests while a file is changed. */
async function runChanged(
  { path, original, changed }: { readonly path: string; readonly original: string; readonly changed: string },
  run: () => Promise<Result>,
): Promise<Result> {
  await writeFile(path, changed);
  try {
    return await run();
  } finally {
    await writeFile(path, original);
  }
}
