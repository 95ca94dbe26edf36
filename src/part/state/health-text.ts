const HEALTH = /^(\d+ \d+ \d+ \d+) (?:-|(\d+)([gf])) /;
const CAUSES = { g: 'gone', f: 'failing' } as const;

/**
 * Health of an endpoint as `parseEndpointHealth` reads it, from what `claims/health.lua` writes; without the claim that probes.
 * Undefined where nothing can be read.
 */
export function healthText(text: string): string | undefined {
  const [, times, disabledMs, cause] = HEALTH.exec(text) ?? [];
  if (times === undefined) return undefined;
  return cause === undefined ? `${times} -` : `${times} - ${disabledMs} ${CAUSES[cause as 'g']}`;
}
