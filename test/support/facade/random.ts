export interface Random {
  /** Returns a whole number from 0 to `count` - 1. */
  readonly below: (count: number) => number;
  readonly pick: <T>(items: readonly T[]) => T;
}

/** Creates a Mulberry32 generator, which returns the same numbers for the same seed. */
export function createRandom(seed: number): Random {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count: number) => Math.floor(next() * count);
  return { below, pick: <T>(items: readonly T[]): T => items[below(items.length)] as T };
}
