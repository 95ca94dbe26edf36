/** A defect in a critical line of code, which must be detected by the tests. */
export interface Mutant {
  /** The effect of the mutant, described as the rule it violates. */
  readonly name: string;
  /** The path of the file, relative to the project folder. */
  readonly file: string;
  /** A text that occurs exactly once, and its replacement. */
  readonly from: string;
  readonly to: string;
  /** The test file that detects the mutant. By default, the tests in its folder and the quick tests of all parts. */
  readonly test?: string;
}

type Change = readonly [name: string, from: string, to: string, test?: string];

/**
 * Returns the mutants of a file.
 * @param test the test file that detects those without one
 */
export function mutantsOf(file: string, changes: readonly Change[], test?: string): Mutant[] {
  return changes.map(([name, from, to, own = test]) => ({
    name,
    file,
    from,
    to,
    ...(own === undefined ? {} : { test: own }),
  }));
}

/** Returns the mutants of a file that are all detected by the same test file. */
export function mutantsWithTest(file: string, test: string, changes: readonly Change[]): Mutant[] {
  return mutantsOf(file, changes, test);
}
