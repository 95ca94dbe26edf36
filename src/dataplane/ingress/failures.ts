import type { Logger } from '../../telemetry/log.ts';

/**
 * Creates a log for the failures of the store. It writes at most one line a second, with the number of failures that
 * were omitted. This is used because every batch fails with the same error if Redis is unavailable.
 */
export function createFailureLog(log: Logger, nowMs: () => number): (operation: string, error: unknown) => void {
  let quietUntilMs = 0;
  let suppressed = 0;
  return function logFailure(operation, error) {
    const now = nowMs();
    if (now < quietUntilMs) {
      suppressed += 1;
      return;
    }
    log.warn({ operation, err: error, suppressed }, 'store operation failed');
    quietUntilMs = now + 1_000;
    suppressed = 0;
  };
}
