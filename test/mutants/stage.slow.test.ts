import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { VitestReport } from '../support/suites/tally.ts';
import { projectOf, resultOf, runStage, type Stage, stagesOf } from './stage.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const PATIENCE_MS = 60_000;

/** Returns the report of a test file with these statuses. */
const fileOf = (name: string, ...statuses: string[]): VitestReport['testResults'][number] => ({
  name: `/project/${name}`,
  status: statuses.includes('failed') || statuses.length === 0 ? 'failed' : 'passed',
  assertionResults: statuses.map(status => ({ fullName: 'a test', status })),
});

test('runs a file using its project', () => {
  const files = ['src/a.test.ts', 'src/a.slow.test.ts', 'src/a.redis.test.ts', 'src/a.kube.test.ts'];
  expect(files.map(projectOf)).toEqual(['unit', 'slow', 'redis', 'kube']);
  expect(stagesOf(['src/a.test.ts', 'src/b.redis.test.ts', 'src/c.test.ts'])).toEqual([
    ['unit', 'src/a.test.ts', 'src/c.test.ts'],
    ['redis', 'src/b.redis.test.ts'],
  ]);
});

describe('the outcome', () => {
  const of = (code: number, ...testResults: VitestReport['testResults']) =>
    resultOf(['src/a.test.ts'], { code, report: { testResults } }).outcome;

  test('is a failure if a test has failed', () => {
    expect(of(1, fileOf('src/a.test.ts', 'passed', 'failed'))).toBe('fail');
  });

  test('names the first test that has failed', () => {
    const report = { testResults: [fileOf('src/a.test.ts', 'passed', 'failed')] };
    expect(resultOf(['src/a.test.ts'], { code: 1, report }).failure).toContain('a test (/project/src/a.test.ts)');
  });

  test('is not a failure if only a hook has failed', () => {
    expect(of(1, { ...fileOf('src/a.test.ts', 'skipped'), status: 'failed' })).toBe('could not be run');
    expect(of(1, { ...fileOf('src/a.test.ts', 'passed'), status: 'failed' })).toBe('could not be run');
  });

  test('is a pass if each path has a test that has passed', () => {
    expect(of(0, fileOf('src/a.test.ts', 'passed', 'skipped'))).toBe('pass');
    expect(of(0, fileOf('src/b.test.ts', 'passed'))).toBe('could not be run');
    expect(of(0, fileOf('src/a.test.ts', 'skipped'))).toBe('could not be run');
  });

  test('is neither if there are no tests, if a file cannot be loaded, or if an error occurs outside of the tests', () => {
    expect(of(1)).toBe('could not be run');
    expect(of(1, fileOf('src/a.test.ts'))).toBe('could not be run');
    expect(of(1, fileOf('src/a.test.ts', 'passed'))).toBe('could not be run');
    expect(resultOf(['src/a.test.ts'], { code: 1, report: undefined }).outcome).toBe('could not be run');
  });
});

test.each<[Stage, string]>([
  [['unit', 'src/core/ids/slug.test.ts'], 'pass'],
  // This file does not exist in this project.
  [['unit', 'src/part/space/space.redis.test.ts'], 'could not be run'],
])('running %s: %s', { timeout: PATIENCE_MS + 10_000 }, async (stage, expected) => {
  expect((await runStage(ROOT, stage, { patienceMs: PATIENCE_MS })).outcome).toBe(expected);
});
