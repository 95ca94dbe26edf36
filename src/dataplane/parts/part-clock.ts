/**
 * Estimates the clock of a part (using TIME of its Redis). The time in a reply lies between sending the call and
 * receiving the reply. The latest send time gives the earliest possible time of a message. This ensures that the age of
 * a message is never underestimated, even if all of the replies are late.
 */
export interface PartClock {
  /** Notes an exchange: sent and received by our monotonic clock, ms, and the part's time between. */
  readonly note: (sentMs: number, receivedMs: number, partMs: number) => void;
  /** Returns the earliest local monotonic time for a time of the part. Far in the past if unknown. */
  readonly monotonicAt: (partMs: number) => number;
  /** The latest possible time of the part. */
  readonly nowMs: () => number;
  /** Resets the estimate. This is needed because the next response could be from a different Redis. */
  readonly reset: () => void;
}

export function createPartClock(monotonicMs: () => number, wallMs: () => number): PartClock {
  let offset = Number.NEGATIVE_INFINITY;
  return {
    note(sentMs, receivedMs, partMs) {
      // Both cannot be true where the part's clock was set forward.
      if (receivedMs - partMs < offset) offset = sentMs - partMs;
      offset = Math.max(offset, sentMs - partMs);
    },
    monotonicAt: partMs => partMs + offset,
    nowMs: () => (offset === Number.NEGATIVE_INFINITY ? wallMs() : Math.ceil(monotonicMs() - offset)),
    reset() {
      offset = Number.NEGATIVE_INFINITY;
    },
  };
}
