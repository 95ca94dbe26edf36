import type { Logger } from '../../telemetry/log.ts';

/** Reports a failure of a part. `what` is a constant phrase. The operation is repeated. */
export type NoteFailure = (
  error: unknown,
  what: string,
  part: { readonly tenant: string; readonly queue: string },
) => void;

const LOG_EVERY_MS = 60_000;

/**
 * Counts the failures of parts, and creates a log for them. It is limited to a single line per minute, with the number of failures that
 * have been omitted, because all parts fail while Redis is unavailable. The level `debug` contains all of them.
 */
export function createPartFailures(
  log: Pick<Logger, 'warn' | 'debug'>,
  { count, monotonicMs }: { readonly count: () => void; readonly monotonicMs: () => number },
): NoteFailure {
  let quietUntilMs = 0;
  let suppressed = 0;
  return function noteFailure(error, what, { tenant, queue }) {
    count();
    const nowMs = monotonicMs();
    if (nowMs < quietUntilMs) {
      suppressed++;
      log.debug({ err: error, tenant, queue }, what);
      return;
    }
    log.warn({ err: error, tenant, queue, failure: what, suppressed }, 'work on a stream failed; retrying');
    quietUntilMs = nowMs + LOG_EVERY_MS;
    suppressed = 0;
  };
}
