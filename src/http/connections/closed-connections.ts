import type { Logger } from '../../telemetry/log.ts';
import type { ConnectionLimit } from './connection-limit.ts';

/** The limits because of which connections are closed: those of connections, and that of unread responses. */
type ClosingLimit = ConnectionLimit | 'unread';

const TEXTS: Readonly<Record<ClosingLimit, string>> = {
  address: 'too many connections: new ones are closed',
  total: 'too many connections: the ones that wait for their client are closed',
  unread: 'too many bytes of responses that are not read: their connections are closed',
};

/** The time between two log lines in milliseconds. */
const QUIET_MS = 60_000;

/**
 * Creates the function that logs connections that were closed because of a limit, once a minute.
 *
 * @param options.most the limits
 * @param options.nowMs monotonic clock in milliseconds
 */
export function createClosedLog<Limit extends ClosingLimit = ConnectionLimit>({
  log,
  most,
  nowMs = () => performance.now(),
}: {
  readonly log: Pick<Logger, 'warn'>;
  readonly most: Readonly<Record<Limit, number>>;
  readonly nowMs?: () => number;
}): (limit: Limit) => void {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return limit => {
    if (nowMs() < quietUntilMs) return;
    quietUntilMs = nowMs() + QUIET_MS;
    log.warn({ limit, most: most[limit] }, TEXTS[limit]);
  };
}
