import type { Logger } from '../telemetry/log.ts';
import type { ConnectionLimit } from './connection-limit.ts';

/** The time between two log lines in milliseconds. */
const QUIET_MS = 60_000;

/**
 * Creates the function that logs connections that were closed because of a limit, once a minute.
 *
 * @param options.most the limits
 * @param options.nowMs monotonic clock in milliseconds
 */
export function createClosedLog({
  log,
  most,
  nowMs = () => performance.now(),
}: {
  readonly log: Pick<Logger, 'warn'>;
  readonly most: Readonly<Record<ConnectionLimit, number>>;
  readonly nowMs?: () => number;
}): (limit: ConnectionLimit) => void {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return limit => {
    if (nowMs() < quietUntilMs) return;
    quietUntilMs = nowMs() + QUIET_MS;
    const closed = limit === 'total' ? 'the ones that wait for their client' : 'new ones';
    log.warn({ limit, most: most[limit] }, `too many connections: ${closed} are closed`);
  };
}
