import type { Limits } from './limits.ts';

/** How close the use of a limit is to the limit. */
export type LimitLevel = 'within' | 'near' | 'reached';

/** Shares of a limit from which on it is near, and below which it is no longer near. */
const NEAR = { from: 0.9, until: 0.8 };

/**
 * Returns the level of a limit. A limit that was near or reached remains near for a while, so that the level does not
 * change with each object. A limit of 0 is always within, since it turns a feature off rather than limiting its use.
 *
 * @param before level until now. Defaults to `within`
 */
export function limitLevel(count: number, limit: number | undefined, before: LimitLevel = 'within'): LimitLevel {
  if (limit === undefined || limit === 0) return 'within';
  if (count >= limit) return 'reached';
  return count >= limit * (before === 'within' ? NEAR.from : NEAR.until) ? 'near' : 'within';
}

/** Limits that are reached or near, by name. */
export interface LimitLevels {
  readonly reached: readonly (keyof Limits)[];
  readonly near: readonly (keyof Limits)[];
}
