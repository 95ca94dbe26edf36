import type { SubscriptionRoute } from './routes.ts';

/** The largest values that a part has room for. */
const LARGEST = { cap: 99_999, maxPerSecond: 99_999, enabledMs: 9_999_999_999_999 } as const;

/**
 * Returns the value of a route for which a part has no room, such as `maxPerSecond: 100000`. Undefined if the route can
 * be written.
 */
export function valueWithoutRoom(route: Pick<SubscriptionRoute, keyof typeof LARGEST>): string | undefined {
  for (const name of Object.keys(LARGEST) as (keyof typeof LARGEST)[]) {
    const value = route[name] ?? 0;
    if (!Number.isInteger(value) || value < 0 || value > LARGEST[name]) return `${name}: ${value}`;
  }
  return undefined;
}
