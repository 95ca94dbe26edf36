import type { Clock } from '../../src/time/clock.ts';

export type ManualClock = Clock & {
  /** Runs everything that is ready, and then moves the time to each timer in order, by a total of `ms`. */
  readonly advance: (ms: number) => Promise<void>;
  readonly pendingTimers: () => number;
};

/** Creates a clock that only moves when calling `advance`. `wallMs` starts at 2026-01-01. */
export function createManualClock(): ManualClock {
  const epochMs = Date.UTC(2026, 0, 1);
  const timers = new Set<{ readonly atMs: number; readonly run: () => void }>();
  let now = 0;

  /** Runs promise chains of any length, including immediates, until they end. */
  async function settle(): Promise<void> {
    for (let i = 0; i < 3; i++) await new Promise(resolve => setImmediate(resolve));
  }

  return {
    nowMs: () => now,
    wallMs: () => epochMs + now,
    setTimer: (run, delayMs) => {
      const timer = { atMs: now + Math.max(0, delayMs), run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance: async ms => {
      const until = now + ms;
      for (;;) {
        await settle();
        let next: { readonly atMs: number; readonly run: () => void } | undefined;
        for (const timer of timers) if (next === undefined || timer.atMs < next.atMs) next = timer;
        if (next === undefined || next.atMs > until) break;
        timers.delete(next);
        now = next.atMs;
        next.run();
      }
      now = until;
      await settle();
    },
    pendingTimers: () => timers.size,
  };
}
