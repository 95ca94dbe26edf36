import { quantile } from '../bench/report/statistics.ts';
import type { Arrival, SentEvent } from './record.ts';

/** The time after the last fault from which all latencies should be as before, in milliseconds. */
const RECOVERED_MS = 5_000;

/**
 * Latencies in milliseconds between the planned time of an event and its first arrival at a subscription without a
 * block.
 */
export interface Figures {
  readonly quietP50: number;
  readonly quietP99: number;
  /** The longest time without any arrival since the first fault. */
  readonly silence: number;
  /** Only includes events starting 5 s after the last fault. */
  readonly recoveredP99: number;
}

export function figuresOf(
  events: readonly SentEvent[],
  arrivals: readonly Arrival[],
  { quietFromMs, fromMs, toMs }: { readonly quietFromMs: number; readonly fromMs: number; readonly toMs: number },
): Figures {
  const plannedOf = new Map(events.map(({ id, plannedMs }) => [id, plannedMs]));
  const seen = new Set<string>();
  const quiet: number[] = [];
  const recovered: number[] = [];
  let silence = 0;
  let lastMs = fromMs;
  for (const { subscription, id, atMs } of arrivals) {
    if (subscription === 'blocked') continue;
    const plannedMs = plannedOf.get(id) ?? Number.NaN;
    if (atMs > fromMs) {
      silence = Math.max(silence, atMs - lastMs);
      lastMs = atMs;
    }
    const name = `${subscription} ${id}`;
    if (seen.has(name)) continue;
    seen.add(name);
    if (plannedMs > quietFromMs && atMs < fromMs) quiet.push(atMs - plannedMs);
    if (plannedMs > toMs + RECOVERED_MS) recovered.push(atMs - plannedMs);
  }
  return {
    quietP50: quantile(quiet, 0.5),
    quietP99: quantile(quiet, 0.99),
    silence,
    recoveredP99: quantile(recovered, 0.99),
  };
}
