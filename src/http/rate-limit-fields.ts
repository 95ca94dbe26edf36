import type { BucketState } from '../time/token-buckets.ts';

/** A limit which is included in responses: `points` come back evenly within `windowSeconds`. */
export interface Quota {
  /** The owner of these points, e.g. `caller`. */
  readonly name: string;
  /** The number of points that can be used in a single burst. Shown rounded down. */
  readonly points: number;
  readonly windowSeconds: number;
}

/** Returns an item of the `RateLimit-Policy` field (draft-ietf-httpapi-ratelimit-headers). */
export function policyItem({ name, points, windowSeconds }: Quota): string {
  return `"${name}";q=${Math.floor(points)};w=${windowSeconds}`;
}

/** Returns an item to use in the `RateLimit` field. */
export function limitItem({ name }: Quota, { left, fullInSeconds }: BucketState): string {
  return `"${name}";r=${left};t=${fullInSeconds}`;
}

/**
 * Returns the detail for a 429 `rate_limited`.
 *
 * @param what the rejected operation, e.g. `call`
 * @param remedy a sentence about who can raise the limit
 */
export function detailOfLimit(what: string, cost: number, quota: Quota, { left }: BucketState, remedy = ''): string {
  const { name, points, windowSeconds } = quota;
  return `The ${what} costs ${cost} of the ${Math.floor(points)} points that the ${name} has in ${windowSeconds} s, and ${left} are left. Wait for the number of seconds in Retry-After and then retry. ${remedy}`.trimEnd();
}
