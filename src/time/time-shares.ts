import { type Clock, sleep } from './clock.ts';
import { createRecentMap } from './recent-map.ts';

/** Assumed duration of the first call of a kind. */
const FIRST_MS = 1;
/** How much of a longer duration remains after each shorter one. */
const KEEP = 0.9;
/** Number of owners that are kept in memory. */
const ENTRIES = 10_000;

/** A call that may start. */
export interface Turn {
  /** Must be called once, when the call has ended. @param ms how long it took, undefined if this is not known */
  readonly end: (ms: number | undefined) => void;
}

/** TimeShares lets each owner use a share of the time of a server that all owners use together. */
export interface TimeShares {
  /**
   * Waits until the owner may start a call of this kind, in the order of these calls. Returns the number of milliseconds
   * that this would have taken, if that is more than `mostWaitMs`, or if `signal` is aborted while it waits. In both cases,
   * nothing is taken.
   */
  readonly take: (owner: string, kind: string, mostWaitMs: number, signal?: AbortSignal) => Promise<Turn | number>;
}

interface Use {
  /** Time up to which the share is used. It is ahead of now after a burst. */
  untilMs: number;
  /** Expected duration of a call, by kind. */
  readonly expected: Map<string, number>;
}

/**
 * Creates shares, as a leaky bucket (GCRA) of time: each owner can use `share` of the time, and what it has not used
 * within the last `burstMs`. A call takes the time that its kind is expected to take, and the rest once it has ended. So
 * the share is exact over time, and calls that start together exceed it by no more than what they take longer than
 * expected.
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
