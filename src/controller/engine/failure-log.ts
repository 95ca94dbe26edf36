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
  let beganMs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let suppressed = 0;
  return function logFailure(log: Pick<Logger, 'warn' | 'debug'>, err: unknown, key: string): void {
    if (nowMs() - beganMs >= PERIOD_MS) {
      beganMs = nowMs();
      lines = 0;
    }
    if (lines === LINES) {
      suppressed++;
      log.debug({ err, key }, 'cannot reconcile; retrying');
      return;
    }
    lines++;
    log.warn({ err, key, ...(suppressed === 0 ? {} : { suppressed }) }, 'cannot reconcile; retrying');
    suppressed = 0;
  };
}
