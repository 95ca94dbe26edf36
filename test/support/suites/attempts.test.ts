import { expect, test } from 'vitest';
import { filesToRepeat, flakyNotes, withSecondRun } from './attempts.ts';
import { formatTally, tallyVitest, type VitestReport } from './tally.ts';

type File = VitestReport['testResults'][number];

/** A file with tests of these names, of which those with `!` failed. */
function fileOf(name: string, ...tests: string[]): File {
  const assertionResults = tests.map(each => {
    const isFailed = each.endsWith('!');
    const fullName = isFailed ? each.slice(0, -1) : each;
    return {
      fullName,
      status: isFailed ? 'failed' : 'passed',
      failureMessages: isFailed ? [`Error: ${fullName}`] : [],
    };
  });
  const status = assertionResults.some(each => each.status === 'failed') ? 'failed' : 'passed';
  return { name, status, assertionResults };
}

const first = { testResults: [fileOf('a', 'one', 'two!'), fileOf('b', 'three')] };

test('only files with failures run again', () => {
  expect(filesToRepeat(first, [])).toEqual(['a']);
  expect(filesToRepeat({ testResults: [fileOf('b', 'three')] }, [])).toEqual([]);
  expect(filesToRepeat(undefined, [])).toEqual([]);
});

test('nothing runs again after an error outside of the tests, or many failures', () => {
  expect(filesToRepeat(first, ['Error: boom'])).toEqual([]);
  const files = ['a', 'b', 'c', 'd'].map(name => fileOf(name, 'one!'));
  expect(filesToRepeat({ testResults: files.slice(1) }, [])).toEqual(['b', 'c', 'd']);
  expect(filesToRepeat({ testResults: files }, [])).toEqual([]);
});

test('what passes at the second attempt counts as passed, and is named', () => {
  const second = { testResults: [fileOf('a', 'one', 'two')] };
  const tally = tallyVitest('redis', withSecondRun(first, second), { exitCode: 0 });
  expect(formatTally(tally)).toBe('3 passed, 0 failed');
  expect(flakyNotes('redis', first, second)).toEqual([
    'FLAKY redis: passed at the second attempt: two (a): Error: two',
  ]);
});

test('what fails twice is a failure', () => {
  const second = { testResults: [fileOf('a', 'one', 'two!')] };
  const tally = tallyVitest('redis', withSecondRun(first, second), { exitCode: 1 });
  expect(formatTally(tally)).toBe('2 passed, 1 failed');
  expect(flakyNotes('redis', first, second)).toEqual([]);
});

test('what fails at the second attempt only is a failure', () => {
  const second = { testResults: [fileOf('a', 'one!', 'two')] };
  const tally = tallyVitest('redis', withSecondRun(first, second), { exitCode: 1 });
  expect(formatTally(tally)).toBe('2 passed, 1 failed');
});
