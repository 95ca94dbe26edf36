/** Pauses between retries: exponential, capped. */
export type Backoff = { readonly firstMs: number; readonly mostMs: number };

/** Returns 75 to 125 % of a duration. */
export function jittered(ms: number, random: () => number): number {
  return ms * (0.75 + random() / 2);
}

/**
 * Returns the pause after the `failures`th failure in a row (1, 2, …), in milliseconds.
 *
 * @param random source of the jitter; absent: no jitter
 */
export function backoffMs({ firstMs, mostMs }: Backoff, failures: number, random?: () => number): number {
  // Beyond 2 ** 30 every step is the cap, and the product stays a safe number.
  const step = Math.min(mostMs, firstMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return random === undefined ? step : jittered(step, random);
}
