/** The configuration for an exponential backoff which has an upper limit. */
export type Backoff = { readonly firstMs: number; readonly mostMs: number };

/** Returns a random duration between 75% and 125% of the given duration. */
export function jittered(ms: number, random: () => number): number {
  return ms * (0.75 + random() / 2);
}

/**
 * Returns the delay after a failure, in milliseconds. The first failure has number 1.
 *
 * @param random source of the jitter. No jitter will be added if this isn't set.
 */
export function backoffMs({ firstMs, mostMs }: Backoff, failures: number, random?: () => number): number {
  // Limit the exponent so that the product stays within the range of safe integers.
  const step = Math.min(mostMs, firstMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return random === undefined ? step : jittered(step, random);
}
