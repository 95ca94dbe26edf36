/** Returns numbers from 0 to below 1, which are the same for the same seed (Mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Choices {
  readonly random: () => number;
  /** Returns a whole number from 0 to `count` - 1. */
  readonly below: (count: number) => number;
  readonly pick: <T>(items: readonly T[]) => T;
}

/** Makes choices that are the same for the same seed. */
export function createChoices(seed: number): Choices {
  const random = createRandom(seed);
  const below = (count: number) => Math.floor(random() * count);
  return { random, below, pick: <T>(items: readonly T[]): T => items[below(items.length)] as T };
}
