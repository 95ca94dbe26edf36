const DAY_MS = 86_400_000;

/**
 * The duration of failures after which the next failed attempt disables the endpoint. The script `lib/health.lua` makes
 * this decision.
 */
export const FAILING_LIMIT_MS = 5 * DAY_MS;

/** The health of an endpoint that has failures or is disabled. */
export interface EndpointHealth {
  /** The time of the first failed attempt since the last success, in milliseconds. */
  readonly sinceMs: number;
  /** The number of failed attempts since then. */
  readonly failures: number;
  /**
   * The time when the endpoint was disabled in milliseconds, and the reason. The endpoint either returned 410 or failed
   * for five days.
   */
  readonly disabled?: { readonly ms: number; readonly by: 'gone' | 'failing' };
}

/** Reads the field `health` of a subscription. Returns undefined if the field is missing or cannot be parsed. */
export function parseEndpointHealth(text: string | undefined): EndpointHealth | undefined {
  const found = /^(\d+) (\d+) \d+ \d+ \S+(?: (\d+) (gone|failing))?$/.exec(text ?? '');
  if (found === null) return undefined;
  const [, since, failures, ms, by] = found;
  const health = { sinceMs: Number(since), failures: Number(failures) };
  return ms === undefined ? health : { ...health, disabled: { ms: Number(ms), by: by as 'gone' } };
}

/** The maximum time by which the clocks of other systems can be ahead, in milliseconds. */
const AHEAD_MS = 60_000;

/**
 * Returns whether the owner enabled the endpoint after `begunMs`. In this case, failures that started at this time are
 * ignored.
 */
export function isEnabledSince(begunMs: number, enabledMs: number | undefined, nowMs: number): boolean {
  return enabledMs !== undefined && enabledMs > begunMs && enabledMs <= nowMs + AHEAD_MS;
}

/** The days of failures after which the owner receives a warning. */
const WARNED_AFTER_DAYS = [1, 3, 4] as const;

/**
 * Returns the last warning that is due and the time of the next warning in milliseconds. Returns undefined if no
 * warning is due.
 */
export function warningOf(sinceMs: number, nowMs: number) {
  const passed = WARNED_AFTER_DAYS.filter(days => nowMs - sinceMs >= days * DAY_MS);
  const next = WARNED_AFTER_DAYS[passed.length];
  return { days: passed.at(-1), nextMs: next === undefined ? undefined : sinceMs + next * DAY_MS };
}
