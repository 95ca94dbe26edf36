/** A clock which also counts the time during which the machine was suspended. This clock never goes back. */
export interface ElapsedClock {
  readonly nowMs: () => number;
  /** The part of this time that the monotonic clock did not count. */
  readonly suspendedMs: () => number;
}

/** The two clocks are not read at the same time. The wall clock has whole milliseconds. */
const JITTER_MS = 2;

/**
 * Creates a clock that adds up the progress of the monotonic clock, or of the wall clock if this is more. While a
 * machine is suspended, the monotonic clock stands still. The wall clock is right again as soon as the machine
 * continues, or once it has been set. If it is set forward for any other reason, this counts as well.
 */
export function createElapsedClock(monotonicMs: () => number, wallMs: () => number): ElapsedClock {
  let suspendedMs = 0;
  /**
   * The time by which the wall clock is ahead of the monotonic clock, apart from the progress that has been counted.
   */
  let aheadMs = wallMs() - monotonicMs();
  return {
    nowMs() {
      const nowMs = monotonicMs();
      const moreMs = wallMs() - nowMs - aheadMs;
      if (moreMs > JITTER_MS) suspendedMs += moreMs;
      if (moreMs > JITTER_MS || moreMs < 0) aheadMs += moreMs;
      return nowMs + suspendedMs;
    },
    suspendedMs: () => suspendedMs,
  };
}
