import type { Logger } from '../../telemetry/log.ts';

/**
 * Creates a log for failures of the store. It is limited to a single line per second. Each line contains the number of
 * failures which have been omitted. We need this because all batches fail with the same error while Redis is
 * unavailable.
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
