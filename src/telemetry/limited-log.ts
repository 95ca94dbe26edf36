import type { Logger } from './log.ts';

/** Writes a line using this logger. The level of lines beyond the limit is `debug`. */
export type LimitedLog = (
  log: Pick<Logger, 'debug' | 'warn' | 'error'>,
  level: 'warn' | 'error',
  fields: object,
  message: string,
) => void;

/**
 * Limits the number of log lines per period, for failures that thousands of operations can have at the same time, e.g.
 * while Redis is unavailable. The next line contains the number of lines beyond the limit in the `suppressed` field.
 */
export function createLimitedLog(options: {
  readonly lines: number;
  readonly periodMs: number;
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number;
}): LimitedLog {
  let beganMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let suppressed = 0;
  return function write(log, level, fields, message) {
    const nowMs = options.nowMs();
    if (nowMs - beganMs >= options.periodMs) {
      beganMs = nowMs;
      lines = 0;
    }
    if (lines === options.lines) {
      suppressed++;
      log.debug(fields, message);
      return;
    }
    lines++;
    log[level](suppressed === 0 ? fields : { ...fields, suppressed }, message);
    suppressed = 0;
  };
}
