/** Prints the progress with one line per event, including the number of seconds since the start of the program. */
export type Narrator = {
  readonly tell: (line: string) => void;
  /**
   * Prints an observation. If it is not as expected, a second line prints the expectation, and the problem is counted.
   */
  readonly observe: (line: string, asItShouldBe: boolean, should: string) => void;
  /** Returns the problems so far. */
  readonly problems: () => readonly string[];
};

/** The marker of a line about a problem. */
export const WRONG = 'WRONG:';

/**
 * @param options.write takes a line without its end
 * @param options.nowMs milliseconds since the program's start
 */
export function createNarrator(options: { write: (line: string) => void; nowMs: () => number }): Narrator {
  const problems: string[] = [];
  const tell = (line: string): void => {
    options.write(`[${(options.nowMs() / 1_000).toFixed(1).padStart(5)} s] ${line}`);
  };
  return {
    tell,
    observe: (line, asItShouldBe, should) => {
      tell(line);
      if (asItShouldBe) return;
      problems.push(`${line}; ${should}`);
      tell(`${WRONG} ${should}`);
    },
    problems: () => problems,
  };
}

/** Formats milliseconds: `12 ms`, `1.25 s`. Clocks of two processes differ, so a negative value becomes 0. */
export function formatMs(ms: number): string {
  const atLeastZero = Math.max(0, ms);
  return atLeastZero < 1_000 ? `${Math.round(atLeastZero)} ms` : `${(atLeastZero / 1_000).toFixed(2)} s`;
}
