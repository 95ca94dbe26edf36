/** The configuration of an exponential backoff with a maximum. */
export type Backoff = { readonly firstMs: number; readonly mostMs: number };

/** Returns a random duration between 75% and 125% of the given one. */
export function jittered(ms: number, random: () => number): number {
  return ms * (0.75 + random() / 2);
}

/**
 * Returns the time to wait after a failure, in milliseconds. The first failure has the number 1.
 *
 * @param random the source of the jitter. If this is not set, jitter is not added.
 */
export function backoffMs({ firstMs, mostMs }: Backoff, failures: number, random?: () => number): number {
  // The exponent is limited so that the product does not exceed the range of safe integers.
  const step = Math.min(mostMs, firstMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return random === undefined ? step : jittered(step, random);
}
