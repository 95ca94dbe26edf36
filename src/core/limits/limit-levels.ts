import type { Limits } from './limits.ts';

/** The usage of a limit in relation to the limit. */
export type LimitLevel = 'within' | 'near' | 'reached';

/** A limit is near if its usage is above the first share and no longer near if its usage is below the second share. */
const NEAR = { from: 0.9, until: 0.8 };

/**
 * Returns the level of a limit. If a limit was near or reached before, it stays near for a while so that the level does
 * not change for each object. A limit of 0 is always within because it is used to disable a feature instead of limiting
 * its usage.
 *
 * @param before level until now. The default is `within`
 */
export function limitLevel(count: number, limit: number | undefined, before: LimitLevel = 'within'): LimitLevel {
  if (limit === undefined || limit === 0) return 'within';
  if (count >= limit) return 'reached';
  return count >= limit * (before === 'within' ? NEAR.from : NEAR.until) ? 'near' : 'within';
}

/** The names of the limits that are near or have been reached. */
export interface LimitLevels {
  readonly reached: readonly (keyof Limits)[];
  readonly near: readonly (keyof Limits)[];
}
