const DAY_MS = 86_400_000;

/** Duration of failures after which the next failed attempt disables the endpoint (`lib/health.lua` decides). */
export const FAILING_LIMIT_MS = 5 * DAY_MS;

/** The health of an endpoint that does not simply work, as the data plane keeps it. */
export interface EndpointHealth {
  /** When the first attempt since the last success failed, ms. */
  readonly sinceMs: number;
  /** Failed attempts since then. */
  readonly failures: number;
  /** When it was disabled, ms, and why: it answered 410, or only failed for five days. */
  readonly disabled?: { readonly ms: number; readonly by: 'gone' | 'failing' };
}

/** Reads the field `health` of a subscription; undefined if it is absent or unreadable. */
export function parseEndpointHealth(text: string | undefined): EndpointHealth | undefined {
  const found = /^(\d+) (\d+) \d+ \d+ \S+(?: (\d+) (gone|failing))?$/.exec(text ?? '');
  if (found === null) return undefined;
  const [, since, failures, ms, by] = found;
  const health = { sinceMs: Number(since), failures: Number(failures) };
  return ms === undefined ? health : { ...health, disabled: { ms: Number(ms), by: by as 'gone' } };
}

/** Maximum clock lead of those who enable endpoints, ms. */
const AHEAD_MS = 60_000;

/** Returns whether the owner enabled the endpoint after `begunMs`: then a failure that began there no longer counts. */
export function isEnabledSince(begunMs: number, enabledMs: number | undefined, nowMs: number): boolean {
  return enabledMs !== undefined && enabledMs > begunMs && enabledMs <= nowMs + AHEAD_MS;
}

/** Days of failures after which the owner is warned. */
const WARNED_AFTER_DAYS = [1, 3, 4] as const;

/** Returns the last warning that is due and the time of the next one, ms; undefined if there is none. */
export function warningOf(sinceMs: number, nowMs: number) {
  const passed = WARNED_AFTER_DAYS.filter(days => nowMs - sinceMs >= days * DAY_MS);
  const next = WARNED_AFTER_DAYS[passed.length];
  return { days: passed.at(-1), nextMs: next === undefined ? undefined : sinceMs + next * DAY_MS };
}
