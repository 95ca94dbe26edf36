/**
 * A part's clock (TIME of its Redis) seen from here. The time of an answer lies between sending and receiving: of all
 * answers the latest sending says when, at the earliest, something that carries a time was made. What is judged by that is
 * never thought younger than it is, also where every answer is late.
 */
export interface PartClock {
  /** Notes an exchange: sent and received by our monotonic clock, ms, and the part's time between. */
  readonly note: (sentMs: number, receivedMs: number, partMs: number) => void;
  /** Our monotonic time, at the earliest, when it was this time of the part; long ago while that is not known. */
  readonly monotonicAt: (partMs: number) => number;
  /** The part's time now, at the latest. */
  readonly nowMs: () => number;
  /** Forgets what was seen: another Redis may answer from now on. */
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
