const DAY_MS = 86_400_000;

/** An endpoint that only failed for so long is disabled by its next attempt that fails (`lib/health.lua` decides). */
export const FAILING_LIMIT_MS = 5 * DAY_MS;

/** How the endpoint of a subscription stands that does not simply work, as the data plane keeps it. */
export interface EndpointHealth {
  /** When the first attempt failed since one succeeded, ms. */
  readonly sinceMs: number;
  /** Attempts that failed from then on. */
  readonly failures: number;
  /** When it was disabled, ms, and why: it answered 410, or nothing but failures came for five days. */
  readonly disabled?: { readonly ms: number; readonly by: 'gone' | 'failing' };
}

/** Reads the field `health` of a subscription; undefined where there is none, or nothing that can be read. */
export function parseEndpointHealth(text: string | undefined): EndpointHealth | undefined {
  const found = /^(\d+) (\d+) \d+ \d+ \S+(?: (\d+) (gone|failing))?$/.exec(text ?? '');
  if (found === null) return undefined;
  const [, since, failures, ms, by] = found;
  const health = { sinceMs: Number(since), failures: Number(failures) };
  return ms === undefined ? health : { ...health, disabled: { ms: Number(ms), by: by as 'gone' } };
}

/** Clocks of those who enable endpoints may be so far ahead, ms. */
const AHEAD_MS = 60_000;

/** Whether what began at `begunMs` does not count any more, since the owner said later that the endpoint works again. */
export function isEnabledSince(begunMs: number, enabledMs: number | undefined, nowMs: number): boolean {
  return enabledMs !== undefined && enabledMs > begunMs && enabledMs <= nowMs + AHEAD_MS;
}

/** Days of nothing but failures after which the owner is warned. */
export const WARNED_AFTER_DAYS = [1, 3, 4] as const;

/** The last of them that has passed, and when the next one does, ms; both undefined where there is none. */
export function warningOf(sinceMs: number, nowMs: number) {
  const passed = WARNED_AFTER_DAYS.filter(days => nowMs - sinceMs >= days * DAY_MS);
  const next = WARNED_AFTER_DAYS[passed.length];
  return { days: passed.at(-1), nextMs: next === undefined ? undefined : sinceMs + next * DAY_MS };
}
