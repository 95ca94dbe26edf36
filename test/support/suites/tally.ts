/** The result of a suite. `notes` contains lines for the reader: skipped tests, and failures with their causes. */
export type Tally = {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly notes: readonly string[];
};

type TestResult = {
  readonly fullName: string;
  readonly status: string;
  readonly failureMessages?: readonly string[];
};

/** The used part of vitest's JSON report (reporter `json`, the format of Jest). */
export type VitestReport = {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly TestResult[];
  }[];
};

/**
 * Returns the result of a command that is a single check, such as the type check.
 * @param remedy solution for the problems that it reports
 */
export function tallyCommand(name: string, exitCode: number, remedy?: string): Tally {
  if (exitCode === 0) return { passed: 1, failed: 0, skipped: 0, notes: [] };
  const note = `FAILED ${name}: exit code ${exitCode}, see above${remedy === undefined ? '' : `. ${remedy}`}`;
  return { passed: 0, failed: 1, skipped: 0, notes: [note] };
}

/** Returns the result of a suite that was not run. */
export function tallySkipped(suite: string, reason: string): Tally {
  return { passed: 0, failed: 0, skipped: 1, notes: [`SKIPPED ${suite}: ${reason}`] };
}

/**
 * Counts a vitest run. Each failure outside of a test is counted as one: a file that could not be loaded, a missing
 * report, or a run that failed for another reason (an unhandled error, the setup, or no tests).
 * @param report undefined if no report could be read
 * @param run the exit code, and a line for each unhandled error
 */
export function tallyVitest(
  suite: string,
  report: VitestReport | undefined,
  { exitCode, errors = [] }: { readonly exitCode: number; readonly errors?: readonly string[] },
): Tally {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  const notes: string[] = [];
  for (const file of report?.testResults ?? []) {
    const failedBefore = failed;
    for (const test of file.assertionResults) {
      if (test.status === 'passed') passed++;
      else if (test.status === 'failed') {
        failed++;
        notes.push(`FAILED ${suite}: ${failureOf(test, file.name)}`);
      } else {
        skipped++;
        notes.push(`SKIPPED ${suite}: ${test.fullName} (${test.status}; ${file.name})`);
      }
    }
    if (file.status === 'failed' && failed === failedBefore) {
      failed++;
      notes.push(`FAILED ${suite}: ${file.name}: ${firstLine(file.message) || 'it could not be run'}`);
    }
  }
  failed += errors.length;
  notes.push(...errors.map(error => `FAILED ${suite}: outside of a test: ${error}`));
  if (failed === 0 && (exitCode !== 0 || passed + skipped === 0)) {
    failed++;
    notes.push(`FAILED ${suite}: ${reasonOf(report, passed + skipped)}, see above`);
  }
  return { passed, failed, skipped, notes };
}

/** The number of failed files of a suite, up to which they are run again. */
const MOST_REPEATED = 2;

/** A vitest run of a suite. The fields have the same meaning as for `tallyVitest`. */
export type VitestRun = {
  readonly report: VitestReport | undefined;
  readonly exitCode: number;
  readonly errors: readonly string[];
};

/**
 * Returns the failed files that should be run again to find out whether their tests are flaky. Returns none if many
 * files failed, or if there was a failure that does not belong to a file.
 */
export function filesToRepeat({ report, errors }: VitestRun): readonly string[] {
  const failed = report?.testResults.filter(({ status }) => status === 'failed').map(({ name }) => name) ?? [];
  return errors.length > 0 || failed.length > MOST_REPEATED ? [] : failed;
}

/**
 * Counts a run in which the failed files were run again. The results of the second run replace those of the first. If
 * all tests passed in the second run, the failures of the first are listed as flaky.
 */
export function tallyRepeated(suite: string, first: VitestRun, second: VitestRun): Tally {
  const repeated = new Set(filesToRepeat(first));
  const kept = first.report?.testResults.filter(({ name }) => !repeated.has(name)) ?? [];
  const again = second.report ?? { testResults: [] };
  // Without a second report, the repeated files would be missing from the sum.
  if (again.testResults.length < repeated.size) return tallyVitest(suite, first.report, first);
  const tally = tallyVitest(suite, { testResults: [...kept, ...again.testResults] }, second);
  if (tally.failed > 0) return tally;
  const flaky = tallyVitest(suite, first.report, first).notes.filter(note => note.startsWith('FAILED '));
  return { ...tally, notes: [...tally.notes, ...flaky.map(note => note.replace('FAILED', 'FLAKY'))] };
}

/** Returns the name of a failed test, its file, and the reason. */
export function failureOf({ fullName, failureMessages }: TestResult, file: string): string {
  return `${fullName} (${file}): ${firstLine(failureMessages?.[0])}`;
}

function reasonOf(report: VitestReport | undefined, tests: number): string {
  if (report === undefined) return 'it left no results';
  return tests === 0 ? 'no test was run' : 'no test failed, but the run did';
}

function firstLine(text: string | undefined): string {
  return text?.trim().split('\n')[0] ?? '';
}

export function addTallies(tallies: readonly Tally[]): Tally {
  return {
    passed: tallies.reduce((sum, tally) => sum + tally.passed, 0),
    failed: tallies.reduce((sum, tally) => sum + tally.failed, 0),
    skipped: tallies.reduce((sum, tally) => sum + tally.skipped, 0),
    notes: tallies.flatMap(({ notes }) => notes),
  };
}

/** Returns `12 passed, 0 failed`, followed by `, 3 skipped` if any tests were skipped. */
export function formatTally({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
