import { createLimitedLog } from '../../telemetry/limited-log.ts';
import type { Logger } from '../../telemetry/log.ts';

/** Reports a failure of a part. `what` is a constant phrase. The operation is repeated. */
export type NoteFailure = (
  error: unknown,
  what: string,
  part: { readonly tenant: string; readonly queue: string },
) => void;

/** All parts fail while Redis is unavailable. */
const FAILURE_LINES = { lines: 1, periodMs: 60_000 };

/** Counts the failures of parts, and writes a line about at most one of them per minute. */
export function createPartFailures(
  log: Pick<Logger, 'debug' | 'warn' | 'error'>,
  { count, monotonicMs }: { readonly count: () => void; readonly monotonicMs: () => number },
): NoteFailure {
  const logFailure = createLimitedLog({ ...FAILURE_LINES, nowMs: monotonicMs });
  return function noteFailure(error, what, { tenant, queue }) {
    count();
    logFailure(log, 'warn', { err: error, tenant, queue, failure: what }, 'work on a stream failed, retrying');
  };
}
