import { setTimeout as delay } from 'node:timers/promises';

/**
 * Asks until `probe` answers something other than undefined and false, and returns it with how long that took.
 *
 * @throws after `withinMs`, naming what was waited for and what the last error was
 */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | false>,
  options: { readonly withinMs: number; readonly everyMs?: number },
): Promise<{ readonly value: T; readonly tookMs: number }> {
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
    if (performance.now() - startedMs > options.withinMs) {
      throw new Error(`not within ${options.withinMs} ms: ${what}`, { cause: last });
    }
    await delay(options.everyMs ?? 50);
  }
}

/** `p`-th percentile (0 to 100) of the numbers; NaN of none. */
export function percentile(numbers: readonly number[], p: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * p) / 100))] ?? Number.NaN;
}

/** Median, 99th percentile and largest, in whole milliseconds, for a test's output. */
export function spread(numbersMs: readonly number[]): string {
  const at = (p: number) => `${Math.round(percentile(numbersMs, p))}`;
  return `p50 ${at(50)} ms, p99 ${at(99)} ms, max ${at(100)} ms of ${numbersMs.length}`;
}
