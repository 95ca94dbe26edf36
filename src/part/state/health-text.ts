const HEALTH = /^(\d+ \d+ \d+ \d+) (?:-|(\d+)([gf])) /;
const CAUSES = { g: 'gone', f: 'failing' } as const;

/**
 * Uses the data that was written by `claims/health.lua` to return the endpoint health, in the format of
 * `parseEndpointHealth`. Does not include the claim that is used for a probe. If it can't be read, this returns
 * undefined.
 */
export function healthText(text: string): string | undefined {
  const [, times, disabledMs, cause] = HEALTH.exec(text) ?? [];
  if (times === undefined) return undefined;
  return cause === undefined ? `${times} -` : `${times} - ${disabledMs} ${CAUSES[cause as 'g']}`;
}
