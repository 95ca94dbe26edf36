import { createLineLimit } from '../../telemetry/line-limit.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';

/** The maximum number of lines in each period. */
const [LINES, PERIOD_MS] = [20, 10_000];

/**
 * Creates a log for the failures of a controller. The number of lines is limited, because thousands of objects fail at
 * the same time while Redis is unavailable. The next line contains the number of failures that have been omitted, and the
 * level `debug` contains all of them.
 */
export function createFailureLog({ nowMs }: Pick<Clock, 'nowMs'>) {
  const takeLine = createLineLimit({ lines: LINES, periodMs: PERIOD_MS, nowMs });
  return function logFailure(log: Pick<Logger, 'warn' | 'debug'>, err: unknown, key: string): void {
    const suppressed = takeLine();
    const fields = { err, key, ...(suppressed ? { suppressed } : {}) };
    log[suppressed === undefined ? 'debug' : 'warn'](fields, 'cannot reconcile; retrying');
  };
}
