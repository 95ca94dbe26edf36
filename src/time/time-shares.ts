import { type Clock, sleep } from './clock.ts';
import { createRecentMap } from './recent-map.ts';

/** The assumed duration for the first call of a kind. */
const FIRST_MS = 1;
/** The proportion of a longer duration that remains after each shorter duration. */
const KEEP = 0.9;
/** The number of owners kept in memory. */
const ENTRIES = 10_000;

/** A call which is allowed to start. */
export interface Turn {
  /** Must be called once, after the call has ended. @param ms the duration, or undefined if it is not known */
  readonly end: (ms: number | undefined) => void;
}

/** TimeShares allows each owner to use a share of the time of a server that is used by all owners. */
export interface TimeShares {
  /**
   * Waits until the owner may start a call of this kind, in the order of these calls. Returns the required waiting time
   * in milliseconds if it exceeds `mostWaitMs`, or if `signal` is aborted while waiting. In both cases, no time is
   * used.
   */
  readonly take: (owner: string, kind: string, mostWaitMs: number, signal?: AbortSignal) => Promise<Turn | number>;
}

interface Use {
  /** The time up to which the share is used. After a burst, this is in the future. */
  untilMs: number;
  /** The expected duration of a call for each kind. */
  readonly expected: Map<string, number>;
}

/**
 * Creates shares, using a leaky bucket (GCRA) of time: each owner can use `share` of the time, plus any time not used
 * within the last `burstMs`. A call is charged its expected duration at the start, and the difference at the end. As a
 * result, the share is exact over time. Concurrent calls can only exceed it if they take longer than expected.
 */
export function createTimeShares(options: {
  /** Between 0 and 1. */
  readonly share: number;
  readonly burstMs: number;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
}): TimeShares {
  const { share, burstMs, clock } = options;
  const uses = createRecentMap<Use>(ENTRIES);

  function useOf(owner: string): Use {
    let use = uses.get(owner);
    if (use === undefined) uses.set(owner, (use = { untilMs: Number.NEGATIVE_INFINITY, expected: new Map() }));
    return use;
  }

  return {
    async take(owner, kind, mostWaitMs, signal) {
      const use = useOf(owner);
      const nowMs = clock.nowMs();
      const waitMs = Math.max(0, use.untilMs - burstMs - nowMs);
      if (waitMs > mostWaitMs) return waitMs;
      const expectedMs = use.expected.get(kind) ?? FIRST_MS;
      use.untilMs = Math.max(nowMs, use.untilMs) + expectedMs / share;
      if (waitMs > 0) await sleep(clock, waitMs, signal);
      if (signal?.aborted) {
        use.untilMs -= expectedMs / share;
        return waitMs;
      }
      return {
        end(ms = expectedMs) {
          use.untilMs += (ms - expectedMs) / share;
          use.expected.set(kind, Math.max(ms, (use.expected.get(kind) ?? 0) * KEEP));
        },
      };
    },
  };
}
