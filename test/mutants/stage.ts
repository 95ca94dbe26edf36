import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { globSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { failureOf, type VitestReport } from '../support/suites/tally.ts';

/** The project and the paths of tests that are run together. */
export type Stage = readonly [project: string, ...paths: string[]];

/**
 * The outcome of the tests of a stage. They fail if at least one test has failed. They could not be run if a path has
 * no tests, a file cannot be loaded, a hook fails (e.g. because Redis cannot be started), or the run fails for any
 * other reason.
 */
export type Outcome = 'pass' | 'fail' | 'take too long' | 'could not be run';

/** The outcome, and the name and the message of the first test that has failed. */
export type Result = { readonly outcome: Outcome; readonly failure?: string };

/** Returns the project of a test file. */
export function projectOf(file: string): 'unit' | 'slow' | 'redis' | 'kube' {
  if (file.endsWith('.slow.test.ts')) return 'slow';
  if (file.endsWith('.redis.test.ts')) return 'redis';
  return file.endsWith('.kube.test.ts') ? 'kube' : 'unit';
}

/** Returns a stage for each project of these files. */
export function stagesOf(files: readonly string[]): readonly Stage[] {
  return [...Map.groupBy(files, projectOf)].map(([project, paths]) => [project, ...paths]);
}

/** Returns the stages of the tests in the folder of a file. Unit tests do not run Lua scripts. */
export function stagesBeside(root: string, file: string): readonly Stage[] {
  const beside = `${dirname(file)}/`;
  const projects = new Set(globSync(`${beside}**/*.test.ts`, { cwd: root }).map(projectOf));
  const run = file.endsWith('.lua') ? (['redis'] as const) : (['unit', 'slow', 'redis'] as const);
  return run.filter(project => projects.has(project)).map(project => [project, beside]);
}

/** @param report undefined if there is none */
export function resultOf(
  paths: readonly string[],
  { code, report }: { readonly code: number | null; readonly report: VitestReport | undefined },
): Result {
  const files = report?.testResults ?? [];
  // If a hook of the file fails, its tests are skipped, and only the file has failed.
  for (const { name, assertionResults } of files) {
    const failed = assertionResults.find(({ status }) => status === 'failed');
    if (failed !== undefined) return { outcome: 'fail', failure: failureOf(failed, name) };
  }
  const hasPassed = (path: string) =>
    files.some(
      ({ name, assertionResults }) => name.includes(path) && assertionResults.some(({ status }) => status === 'passed'),
    );
  return { outcome: code === 0 && paths.every(hasPassed) ? 'pass' : 'could not be run' };
}

/**
 * Runs the tests of a stage until the first one fails.
 *
 * @param folder the project, or a copy of it
 * @param options.reportFolder for the report of the tests, while they run. By default, the folder of the system for
 *   temporary files
 * @param options.onStart is called with a function that ends the tests
 */
export async function runStage(
  folder: string,
  [project, ...paths]: Stage,
  options: {
    readonly patienceMs: number;
    readonly env?: NodeJS.ProcessEnv;
    readonly reportFolder?: string;
    readonly onStart?: (stop: () => void) => void;
  },
): Promise<Result> {
  const vitest = join(folder, 'node_modules', 'vitest', 'vitest.mjs');
  const file = join(options.reportFolder ?? tmpdir(), `mutant-report-${randomUUID()}.json`);
  const output = ['--reporter=json', `--outputFile.json=${file}`];
  const child = spawn(process.execPath, [vitest, 'run', '--bail=1', ...output, '--project', project, ...paths], {
    cwd: folder,
    stdio: 'ignore',
    env: { ...process.env, ...options.env },
  });
  options.onStart?.(() => child.kill('SIGTERM'));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGTERM');
  }, options.patienceMs);
  const code = await new Promise<number | null>(resolve => child.once('exit', resolve));
  clearTimeout(timer);
  const report: VitestReport | undefined = await readFile(file, 'utf8').then(JSON.parse, () => undefined);
  await rm(file, { force: true });
  return isLate ? { outcome: 'take too long' } : resultOf(paths, { code, report });
}
