import type { Limits } from './limits.ts';

/** How close the use of a limit is to the limit. */
export type LimitLevel = 'within' | 'near' | 'reached';

/**
 * A limit is near if its use is above the first share, and it is no longer near if its use is below the second share.
 */
const NEAR = { from: 0.9, until: 0.8 };

/**
 * Returns the level of a limit. If a limit was near or reached before, it will stay near for a while. This is done so
 * that the level does not change for each object. If the limit is 0, it is always within, because this is used to turn
 * off a feature and not to limit its use.
 *
 * @param before level until now. The default is `within`
 */
export function limitLevel(count: number, limit: number | undefined, before: LimitLevel = 'within'): LimitLevel {
  if (limit === undefined || limit === 0) return 'within';
  if (count >= limit) return 'reached';
  return count >= limit * (before === 'within' ? NEAR.from : NEAR.until) ? 'near' : 'within';
}

/** The names of the limits that have been reached or are near. */
export interface LimitLevels {
  readonly reached: readonly (keyof Limits)[];
  readonly near: readonly (keyof Limits)[];
}
