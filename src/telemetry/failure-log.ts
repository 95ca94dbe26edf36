import { createLimitedLog } from './limited-log.ts';
import type { Logger } from './log.ts';

/** Writes a line about this error using this logger. */
type FailureLog = (
  log: Pick<Logger, 'debug' | 'warn' | 'error'>,
  level: 'warn' | 'error',
  error: unknown,
  fields: object,
  message: string,
) => void;

/** Causes are remembered for a minute. There are only a few, unless messages contain names. */
const CAUSES = { most: 10, periodMs: 60_000 };

/**
 * Limits the log lines about failures that thousands of operations can have at the same time. Each cause is logged once
 * a minute with the stack of its error. All other lines about the cause only contain the message of the error, in the
 * `detail` field. Their number is limited. A cause is a text in `fields.code`, if there is one, and the message of the
 * error.
 *
 * @param options.repeats the limit of the lines without a stack, see `createLimitedLog`
 * @param options.nowMs monotonic clock in milliseconds
 */
export function createFailureLog({
  repeats,
  nowMs,
}: {
  readonly repeats: { readonly lines: number; readonly periodMs: number };
  readonly nowMs: () => number;
}): FailureLog {
  const logRepeat = createLimitedLog({ ...repeats, nowMs });
  const causes = new Set<string>();
  let beganMs = Number.NEGATIVE_INFINITY;
  return (log, level, error, fields, message) => {
    if (nowMs() - beganMs >= CAUSES.periodMs) {
      beganMs = nowMs();
      causes.clear();
    }
    const detail = error instanceof Error ? String(error) : undefined;
    const cause = `${'code' in fields ? String(fields.code) : ''} ${detail}`;
    if (causes.has(cause) || causes.size === CAUSES.most) return logRepeat(log, level, { ...fields, detail }, message);
    causes.add(cause);
    log[level]({ ...fields, err: error }, message);
  };
}
