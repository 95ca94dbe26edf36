/**
 * Limits the number of log lines per period, for failures that thousands of operations can have at the same time. Returns
 * a function that is called before each line. It returns the number of lines that have been omitted since the last one,
 * or undefined if this line must be omitted.
 */
export function createLineLimit(options: {
  readonly lines: number;
  readonly periodMs: number;
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number;
}): () => number | undefined {
  let beganMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let omitted = 0;
  return function takeLine() {
    const nowMs = options.nowMs();
    if (nowMs - beganMs >= options.periodMs) {
      beganMs = nowMs;
      lines = 0;
    }
    if (lines === options.lines) {
      omitted++;
      return undefined;
    }
    lines++;
    const before = omitted;
    omitted = 0;
    return before;
  };
}
