import { failureOf, type VitestReport } from './tally.ts';

/** More files than these do not fail by chance. */
const MOST_FILES = 3;

/**
 * Returns the files to run once more after a run with failures, none if a second run would prove nothing: nothing or
 * too much failed, or something failed outside of the tests.
 */
export function filesToRepeat(report: VitestReport | undefined, errors: readonly string[]): string[] {
  const failed = (report?.testResults ?? []).filter(({ status }) => status === 'failed').map(({ name }) => name);
  return errors.length > 0 || failed.length > MOST_FILES ? [] : failed;
}

/** Returns the report of a run in which the files of a second run took the places of the same files. */
export function withSecondRun(first: VitestReport, second: VitestReport): VitestReport {
  const again = new Map(second.testResults.map(file => [file.name, file]));
  return { testResults: first.testResults.map(file => again.get(file.name) ?? file) };
}

/** Returns a line for each test that failed and then passed. */
export function flakyNotes(suite: string, first: VitestReport, second: VitestReport): string[] {
  const passed = new Set<string>();
  for (const file of second.testResults) {
    for (const { fullName, status } of file.assertionResults) {
      if (status === 'passed') passed.add(`${file.name} ${fullName}`);
    }
  }
  return first.testResults.flatMap(file =>
    file.assertionResults
      .filter(({ fullName, status }) => status === 'failed' && passed.has(`${file.name} ${fullName}`))
      .map(test => `FLAKY ${suite}: passed at the second attempt: ${failureOf(test, file.name)}`),
  );
}
