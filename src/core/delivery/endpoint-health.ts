const DAY_MS = 86_400_000;

/**
 * How long an endpoint may be failing until the next failed attempt disables it, as decided by the script
 * `lib/health.lua`.
 */
export const FAILING_LIMIT_MS = 5 * DAY_MS;

/** Health of an endpoint that is failing or disabled. */
export interface EndpointHealth {
  /** Time of the first failed attempt since the last success, in milliseconds. */
  readonly sinceMs: number;
  /** Number of failed attempts since then. */
  readonly failures: number;
  /** When the endpoint was disabled, in milliseconds, and why. It either returned 410 or failed for five days. */
  readonly disabled?: { readonly ms: number; readonly by: 'gone' | 'failing' };
}

/** Reads a subscription's `health` field. Returns undefined if it is missing or can't be parsed. */
export function parseEndpointHealth(text: string | undefined): EndpointHealth | undefined {
  const found = /^(\d+) (\d+) \d+ \d+ \S+(?: (\d+) (gone|failing))?$/.exec(text ?? '');
  if (found === null) return undefined;
  const [, since, failures, ms, by] = found;
  const health = { sinceMs: Number(since), failures: Number(failures) };
  return ms === undefined ? health : { ...health, disabled: { ms: Number(ms), by: by as 'gone' } };
}

/** How far the clocks of other systems may be ahead, in milliseconds. */
const AHEAD_MS = 60_000;

/**
 * Returns true if the owner enabled the endpoint after `begunMs`, meaning that failures which began at that time should
 * be ignored.
 */
export function isEnabledSince(begunMs: number, enabledMs: number | undefined, nowMs: number): boolean {
  return enabledMs !== undefined && enabledMs > begunMs && enabledMs <= nowMs + AHEAD_MS;
}

/** Number of days of failures after which the owner will be warned. */
const WARNED_AFTER_DAYS = [1, 3, 4] as const;

/**
 * Returns the latest warning that is due, along with the time of the next one in milliseconds. Undefined if no warning
 * is due.
 */
export function warningOf(sinceMs: number, nowMs: number) {
  const passed = WARNED_AFTER_DAYS.filter(days => nowMs - sinceMs >= days * DAY_MS);
  const next = WARNED_AFTER_DAYS[passed.length];
  return { days: passed.at(-1), nextMs: next === undefined ? undefined : sinceMs + next * DAY_MS };
}
