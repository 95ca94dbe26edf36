/** Pauses between retries: exponential, jittered, capped. */
export type Backoff = { readonly firstMs: number; readonly mostMs: number };

/** Returns the pause after the `failures`th failure in a row (1, 2, …), in milliseconds: 75 to 125 % of its step. */
export function backoffMs({ firstMs, mostMs }: Backoff, failures: number, random: () => number): number {
  // Beyond 2 ** 30 every step is the cap, and the product stays a safe number.
  const step = Math.min(mostMs, firstMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return step * (0.75 + random() / 2);
}
