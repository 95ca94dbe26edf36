import type { Logger } from '../../telemetry/log.ts';

/**
 * Logs failures of the store, at most one line a second with the number of those left out: while Redis is away every
 * batch fails, and each says the same.
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
