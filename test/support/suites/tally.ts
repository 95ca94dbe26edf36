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

/** Returns the name of a failed test, its file, and the reason. */
function failureOf({ fullName, failureMessages }: TestResult, file: string): string {
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
