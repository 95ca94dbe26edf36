const HEALTH = /^(\d+ \d+ \d+ \d+) (?:-|(\d+)([gf])) /;
const CAUSES = { g: 'gone', f: 'failing' } as const;

/**
 * Returns the health of an endpoint in the format of `parseEndpointHealth`, from the data written by
 * `claims/health.lua`, without the probing claim. Undefined if unreadable.
 */
export function healthText(text: string): string | undefined {
  const [, times, disabledMs, cause] = HEALTH.exec(text) ?? [];
  if (times === undefined) return undefined;
  return cause === undefined ? `${times} -` : `${times} - ${disabledMs} ${CAUSES[cause as 'g']}`;
}
