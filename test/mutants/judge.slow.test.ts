import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { copyProject, type ProjectCopy } from './copy.ts';
import { judge } from './judge.ts';
import type { Mutant } from './mutant.ts';

const RUN = join(import.meta.dirname, 'run.ts');
const BACKOFF = 'src/core/delivery/backoff.ts';

const mutant = (from: string, to: string, test = 'src/core/delivery/backoff.test.ts'): Mutant => ({
  name: 'a mutant',
  file: BACKOFF,
  from,
  to,
  test,
});

describe('a mutant', () => {
  let copy: ProjectCopy;
  beforeAll(async () => {
    copy = await copyProject();
  }, 60_000);
  afterAll(() => copy.remove());

  test.each<[string, Mutant, RegExp]>([
    ['is detected by a test', mutant('Math.max(scheduledMs, askedMs)', 'askedMs'), /^detected by .* \(src\/core/],
    ['survives', mutant('Math.max(scheduledMs, askedMs)', 'Math.max(askedMs, scheduledMs)'), /^survived$/],
    ['does not fit', mutant('a text that is not there', ''), /^does not fit$/],
    ['prevents the tests from being run', mutant('Math.max(', 'Math.max(('), /^prevents the tests from being run$/],
  ])('%s', async (_name, given, verdict) => {
    const original = readFileSync(join(copy.path, BACKOFF), 'utf8');
    expect(await judge(copy, given, new Map())).toMatch(verdict);
    expect(readFileSync(join(copy.path, BACKOFF), 'utf8')).toBe(original);
  });

  test('is not judged by tests that fail without it', async () => {
    const missing = mutant('Math.max(scheduledMs, askedMs)', 'askedMs', 'src/core/delivery/none.test.ts');
    const baselines = new Map();
    await expect(judge(copy, missing, baselines)).rejects.toThrow('could not be run without any changes');
    // The next mutant runs them again.
    expect(baselines.size).toBe(0);
  });

  test('starts no tests after its copy has been removed', async () => {
    await copy.remove();
    await expect(copy.run(['unit', 'src/core/delivery/backoff.test.ts'], 30_000)).rejects.toThrow('was removed');
  });
});

test('judges the selected mutants at the same time, beginning with a later one', async () => {
  const args = [RUN, 'dispatcher/deliver.ts'];
  const env = { ...process.env, FROM: '2', JOBS: '2' };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).not.toMatch(/^1 of/m);
  expect(stdout).toMatch(/^2 of 4, \d+ s: .* detected by/m);
  expect(stdout).toMatch(/^3 of 4, \d+ s: .* detected by/m);
  expect(stdout).toMatch(/\n\n3 detected, 0 not detected\n$/);
});

test('SIGTERM ends the tests and removes the copies', async () => {
  const folder = await temporaryFolder('mutants-test');
  const child = spawn(process.execPath, [RUN, 'backoff.ts'], {
    env: { ...process.env, TMPDIR: folder.path, JOBS: '2' },
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  /** Returns the tests that run in a copy. */
  const running = () => spawnSync('pgrep', ['-f', `${folder.path}/.*vitest`], { encoding: 'utf8' }).stdout;
  await expect.poll(running, { timeout: 45_000, interval: 20 }).not.toBe('');
  child.kill('SIGTERM');
  expect(await exited).toEqual([143, null]);
  await expect.poll(running, { timeout: 10_000 }).toBe('');
  // A copy that was not complete is removed a second after the end.
  await expect.poll(() => readdirSync(folder.path), { timeout: 10_000 }).toEqual([]);
  await folder.remove();
});
