const DAY_MS = 86_400_000;

/**
 * The time for which an endpoint can fail before the next failed attempt disables it. Evaluated by the `lib/health.lua`
 * script.
 */
export const FAILING_LIMIT_MS = 5 * DAY_MS;

/** The health of an endpoint that is failing or has been disabled. */
export interface EndpointHealth {
  /** The time of the first failed attempt after the last success, in milliseconds. */
  readonly sinceMs: number;
  /** The number of failed attempts since that time. */
  readonly failures: number;
  /**
   * The time at which the endpoint was disabled (in milliseconds), and the reason. The endpoint either returned 410 or
   * failed for five days.
   */
  readonly disabled?: { readonly ms: number; readonly by: 'gone' | 'failing' };
}

/** Reads the `health` field of a subscription. Returns undefined if the field is missing or can't be parsed. */
export function parseEndpointHealth(text: string | undefined): EndpointHealth | undefined {
  const found = /^(\d+) (\d+) \d+ \d+ \S+(?: (\d+) (gone|failing))?$/.exec(text ?? '');
  if (found === null) return undefined;
  const [, since, failures, ms, by] = found;
  const health = { sinceMs: Number(since), failures: Number(failures) };
  return ms === undefined ? health : { ...health, disabled: { ms: Number(ms), by: by as 'gone' } };
}

/** The maximum time by which the clocks of other systems may be ahead, in milliseconds. */
const AHEAD_MS = 60_000;

/**
 * Returns true if the owner has enabled the endpoint after `begunMs`. In this case, failures that started at this time
 * should be ignored.
 */
export function isEnabledSince(begunMs: number, enabledMs: number | undefined, nowMs: number): boolean {
  return enabledMs !== undefined && enabledMs > begunMs && enabledMs <= nowMs + AHEAD_MS;
}

/** The number of days with failures after which we will warn the owner. */
const WARNED_AFTER_DAYS = [1, 3, 4] as const;

/** Returns the latest warning that is due (if there is one), and the time of the next warning in milliseconds. */
export function warningOf(sinceMs: number, nowMs: number) {
  const passed = WARNED_AFTER_DAYS.filter(days => nowMs - sinceMs >= days * DAY_MS);
  const next = WARNED_AFTER_DAYS[passed.length];
  return { days: passed.at(-1), nextMs: next === undefined ? undefined : sinceMs + next * DAY_MS };
}
