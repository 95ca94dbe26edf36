import { expect, test } from 'vitest';
import {
  addTallies,
  filesToRepeat,
  formatTally,
  tallyCommand,
  tallyRepeated,
  tallySkipped,
  tallyVitest,
  type VitestReport,
} from './tally.ts';

function reportOf(...statuses: string[]): VitestReport {
  return fileOf('a.test.ts', ...statuses);
}

function fileOf(name: string, ...statuses: string[]): VitestReport {
  const assertionResults = statuses.map((status, index) => ({
    fullName: `test ${index}`,
    status,
    ...(status === 'failed' ? { failureMessages: ['AssertionError: 1 is not 2\n    at somewhere'] } : {}),
  }));
  const status = statuses.includes('failed') ? 'failed' : 'passed';
  return { testResults: [{ name, status, assertionResults }] };
}

test('counts tests by their result and lists failed tests', () => {
  const tally = tallyVitest('unit', reportOf('passed', 'passed', 'failed'), { exitCode: 1 });
  const notes = ['FAILED unit: test 2 (a.test.ts): AssertionError: 1 is not 2'];
  expect(tally).toEqual({ passed: 2, failed: 1, skipped: 0, notes });
});

test('lists every skipped test', () => {
  const tally = tallyVitest('unit', reportOf('passed', 'skipped', 'todo'), { exitCode: 0 });
  expect(formatTally(tally)).toBe('1 passed, 0 failed, 2 skipped');
  expect(tally.notes).toEqual(['SKIPPED unit: test 1 (skipped; a.test.ts)', 'SKIPPED unit: test 2 (todo; a.test.ts)']);
});

test('a file that could not be loaded is a failure', () => {
  const broken = { name: 'b.test.ts', status: 'failed', message: 'Cannot find module x\n at y', assertionResults: [] };
  const tally = tallyVitest('unit', { testResults: [...reportOf('passed').testResults, broken] }, { exitCode: 1 });
  expect(formatTally(tally)).toBe('1 passed, 1 failed');
  expect(tally.notes).toEqual(['FAILED unit: b.test.ts: Cannot find module x']);
});

test('a run without a report is a failure for any exit code', () => {
  expect(formatTally(tallyVitest('kube', undefined, { exitCode: 137 }))).toBe('0 passed, 1 failed');
  expect(formatTally(tallyVitest('kube', undefined, { exitCode: 0 }))).toBe('0 passed, 1 failed');
});

test('a run that exits with an error is a failure even if every test passed', () => {
  expect(formatTally(tallyVitest('redis', reportOf('passed'), { exitCode: 1 }))).toBe('1 passed, 1 failed');
});

test('an error outside of a test is a failure, with its cause', () => {
  const tally = tallyVitest('redis', reportOf('passed'), { exitCode: 1, errors: ['Error: boom'] });
  expect(formatTally(tally)).toBe('1 passed, 1 failed');
  expect(tally.notes).toEqual(['FAILED redis: outside of a test: Error: boom']);
});

test('a suite that was not run is counted with its reason', () => {
  const tally = tallySkipped('node', 'a node needs root');
  expect(formatTally(tally)).toBe('0 passed, 0 failed, 1 skipped');
  expect(tally.notes).toEqual(['SKIPPED node: a node needs root']);
});

test('a suite without tests is a failure', () => {
  expect(formatTally(tallyVitest('system', { testResults: [] }, { exitCode: 0 }))).toBe('0 passed, 1 failed');
});

const runOf = (...reports: VitestReport[]) => {
  const report = { testResults: reports.flatMap(({ testResults }) => testResults) };
  return { report, exitCode: report.testResults.some(({ status }) => status === 'failed') ? 1 : 0, errors: [] };
};
const HALF_FAILED = runOf(fileOf('a.test.ts', 'passed'), fileOf('b.test.ts', 'passed', 'failed'));

test('a failed file that passes when it is run again is flaky', () => {
  expect(filesToRepeat(HALF_FAILED)).toEqual(['b.test.ts']);
  expect(tallyRepeated('redis', HALF_FAILED, runOf(fileOf('b.test.ts', 'passed', 'passed')))).toEqual({
    passed: 3,
    failed: 0,
    skipped: 0,
    notes: ['FLAKY redis: test 1 (b.test.ts): AssertionError: 1 is not 2'],
  });
});

test('a file that fails twice is a failure', () => {
  const tally = tallyRepeated('redis', HALF_FAILED, runOf(fileOf('b.test.ts', 'failed', 'passed')));
  expect(formatTally(tally)).toBe('2 passed, 1 failed');
  expect(tally.notes).toEqual(['FAILED redis: test 0 (b.test.ts): AssertionError: 1 is not 2']);
});

test.each([
  ['leaves no report', { report: undefined, exitCode: 0, errors: [] }],
  ['runs none of the files', runOf()],
  ['has an error outside of a test', { ...runOf(fileOf('b.test.ts', 'passed')), errors: ['Error: boom'] }],
  ['exits with an error', { ...runOf(fileOf('b.test.ts', 'passed')), exitCode: 1 }],
])('a second run that %s does not hide the failure', (_, second) => {
  expect(tallyRepeated('redis', HALF_FAILED, second).failed).toBe(1);
});

test('no file is run again if three have failed, or if an error occurred outside of a test', () => {
  const three = ['a', 'b', 'c'].map(name => fileOf(name, 'failed'));
  expect(filesToRepeat(runOf(...three.slice(1)))).toHaveLength(2);
  expect(filesToRepeat(runOf(...three))).toEqual([]);
  expect(filesToRepeat({ ...HALF_FAILED, errors: ['Error: boom'] })).toEqual([]);
  expect(filesToRepeat({ report: undefined, exitCode: 1, errors: [] })).toEqual([]);
});

test('the sum adds suites and checks and keeps their notes', () => {
  const sum = addTallies([
    tallyCommand('types', 0),
    tallyCommand('lint', 2),
    tallyVitest('unit', reportOf('passed'), { exitCode: 0 }),
  ]);
  expect(sum).toEqual({ passed: 2, failed: 1, skipped: 0, notes: ['FAILED lint: exit code 2, see above'] });
});

test('a failed check contains the command that solves its problems', () => {
  expect(tallyCommand('format', 1, 'Run `make format`').notes).toEqual([
    'FAILED format: exit code 1, see above. Run `make format`',
  ]);
});
