import { setTimeout as delay } from 'node:timers/promises';

/**
 * Returns the pause between two probes in milliseconds, which is 5% of the elapsed time within these limits. If it were
 * always short, waiting for a minute would take more CPU time than the rest of a test.
 */
export function pauseFrom(leastMs: number, mostMs = 250): (elapsedMs: number) => number {
  return elapsedMs => Math.min(mostMs, Math.max(leastMs, elapsedMs / 20));
}

/**
 * Repeats `probe` until it returns a value other than undefined or false. Returns this value and the elapsed time.
 * @param options.withinMs defaults to 60,000
 * @param options.everyMs pause between two probes, or a function of the elapsed time. Defaults to `pauseFrom(50)`
 * @throws after `withinMs`, including `what` and the last error
 */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | false>,
  options: { readonly withinMs?: number; readonly everyMs?: number | ((elapsedMs: number) => number) } = {},
): Promise<{ readonly value: T; readonly tookMs: number }> {
  const { withinMs = 60_000, everyMs = pauseFrom(50) } = options;
  const startedMs = performance.now();
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      last = undefined;
      if (value !== undefined && value !== false) return { value, tookMs: performance.now() - startedMs };
    } catch (error) {
      last = error;
    }
    const elapsedMs = performance.now() - startedMs;
    if (elapsedMs > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`, { cause: last });
    await delay(typeof everyMs === 'number' ? everyMs : everyMs(elapsedMs));
  }
}

/** Returns the `p`-th percentile (0 to 100) of the numbers. NaN if there are none. */
export function percentile(numbers: readonly number[], p: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * p) / 100))] ?? Number.NaN;
}

/** Returns the median, the 99th percentile, and the maximum in whole milliseconds, for printing. */
export function spread(numbersMs: readonly number[]): string {
  const at = (p: number) => `${Math.round(percentile(numbersMs, p))}`;
  return `p50 ${at(50)} ms, p99 ${at(99)} ms, max ${at(100)} ms of ${numbersMs.length}`;
}
