import type { ElapsedClock } from '../../time/elapsed-clock.ts';

/**
 * Estimates the clock of a part (using TIME of its Redis). The time in a reply lies between sending the call and
 * receiving the reply. The latest send time gives the earliest possible time of a message, which ensures that the age
 * of a message is never underestimated, even if all of the replies are late.
 */
export interface PartClock {
  /** Notes an exchange: sent and received by our clock, ms, and the part's time between. */
  readonly note: (sentMs: number, receivedMs: number, partMs: number) => void;
  /** Returns the earliest time of our clock for a time of the part. Far in the past if unknown. */
  readonly elapsedAt: (partMs: number) => number;
  /**
   * The latest possible time of the part. If we were suspended since the last reply, this is not included, because the
   * wall clock might only have been set forward. A retry would then have to wait for as long.
   */
  readonly nowMs: () => number;
  /** Resets the estimate. Needed because the next response could be from a different Redis. */
  readonly reset: () => void;
}

export function createPartClock(elapsed: ElapsedClock, wallMs: () => number): PartClock {
  let offset = Number.NEGATIVE_INFINITY;
  /** Of our clock, at the last reply. */
  let suspendedMs = 0;
  return {
    note(sentMs, receivedMs, partMs) {
      // If the two bounds contradict each other, the clock of the part was set forward.
      if (receivedMs - partMs < offset) offset = sentMs - partMs;
      offset = Math.max(offset, sentMs - partMs);
      suspendedMs = elapsed.suspendedMs();
    },
    elapsedAt: partMs => partMs + offset,
    nowMs() {
      if (offset === Number.NEGATIVE_INFINITY) return wallMs();
      return Math.ceil(elapsed.nowMs() - (elapsed.suspendedMs() - suspendedMs) - offset);
    },
    reset() {
      offset = Number.NEGATIVE_INFINITY;
    },
  };
}
