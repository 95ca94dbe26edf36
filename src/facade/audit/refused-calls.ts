import type { Clock } from '../../time/clock.ts';
import { createTokenBuckets } from '../../time/token-buckets.ts';

/** A call without access, i.e. with status 401 or 403. */
export interface RefusedCall {
  readonly status: number;
  /** The reason why the token was rejected, or the problem code for all other calls. */
  readonly reason: string;
  /** The client's network. Undefined if addresses are not used. */
  readonly network: string | undefined;
}

/** The number of lines for single calls that can be written immediately, for each status. */
const BURST = 20;
const LINES_PER_SECOND = 5;
const SUMMARY_AFTER_MS = 10_000;
/** The maximum number of networks to count and to include in a summary. */
const MOST_NETWORKS = 1_000;
const LISTED_NETWORKS = 5;

interface Unwritten {
  count: number;
  readonly reasons: Map<string, number>;
  readonly networks: Map<string, number>;
}

function add(counts: Map<string, number>, key: string, most = Number.POSITIVE_INFINITY): void {
  if (counts.has(key) || counts.size < most) counts.set(key, (counts.get(key) ?? 0) + 1);
}

/**
 * Limits the number of lines for rejected calls. For each status, the limit is 20 lines, followed by 5 lines per
 * second. All other calls are counted. The counts are written after 10 s. With a line for each call, a flood of bad
 * tokens could fill the disk.
 *
 * @param write writes the line of a call, or a summary
 */
export function createRefusedCalls(write: (line: object) => void, clock: Clock) {
  const buckets = createTokenBuckets({
    capacity: BURST,
    refillMs: (BURST / LINES_PER_SECOND) * 1_000,
    entries: 2,
    nowMs: clock.nowMs,
  });
  const unwritten = new Map<number, Unwritten>();
  let cancel: (() => void) | undefined;

  function flush(): void {
    cancel?.();
    cancel = undefined;
    for (const [status, { count, reasons, networks }] of unwritten) {
      const most = [...networks].toSorted(([, a], [, b]) => b - a).slice(0, LISTED_NETWORKS);
      write({
        msg: 'refused calls',
        status,
        count,
        reasons: Object.fromEntries(reasons),
        ...(most.length === 0 ? {} : { networks: Object.fromEntries(most) }),
        seconds: SUMMARY_AFTER_MS / 1_000,
      });
    }
    unwritten.clear();
  }

  return {
    /** @param line returns the line of this call. Only called if it is written */
    note({ status, reason, network }: RefusedCall, line: () => object): void {
      if (buckets.take(`${status}`, 1)) return write(line());
      const counts = unwritten.get(status) ?? { count: 0, reasons: new Map(), networks: new Map() };
      unwritten.set(status, counts);
      counts.count++;
      add(counts.reasons, reason);
      if (network !== undefined) add(counts.networks, network, MOST_NETWORKS);
      cancel ??= clock.setTimer(flush, SUMMARY_AFTER_MS);
    },
    /** Writes the calls counted so far. */
    flush,
  };
}
