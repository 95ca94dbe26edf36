/** The relative frequency of each operation. */
export const WEIGHTS = {
  ingest: 12,
  exchange: 12,
  end: 14,
  'read pushes': 8,
  wait: 6,
  advance: 3,
  key: 4,
  row: 3,
  evict: 2,
  reclaim: 2,
  'lose answer': 1,
  'call late': 1,
  'lose pushes': 1,
  die: 1,
  enable: 2,
  tokens: 2,
  'lose marker': 1,
  'write marker': 3,
  close: 3,
  skip: 2,
  'skip up to': 1,
  acknowledge: 2,
  pull: 2,
  recover: 3,
  replay: 2,
  'send test': 1,
  look: 2,
  endpoint: 1,
  sweep: 5,
  'delete subscription': 1,
} as const;
export type Kind = keyof typeof WEIGHTS;

/**
 * An operation, and a number that determines all of its choices. It can be performed in any state and can be omitted.
 */
export interface Operation {
  readonly kind: Kind;
  readonly x: number;
}

/** Returns numbers below 2^32 that are determined by a seed (splitmix32). */
export function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state ^ (state >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
}

export function historyOf(seed: number, length: number): Operation[] {
  const random = randomOf(seed);
  const kinds = Object.keys(WEIGHTS) as Kind[];
  const sum = kinds.reduce((all, kind) => all + WEIGHTS[kind], 0);
  return Array.from({ length }, () => {
    let left = random() % sum;
    const kind = kinds.find(each => (left -= WEIGHTS[each]) < 0) as Kind;
    return { kind, x: random() };
  });
}

/** The choices of one operation. */
export function choicesOf({ x }: Operation) {
  const random = randomOf(x);
  const below = (most: number) => random() % most;
  return {
    below,
    pick: <T>(of: readonly T[]): T | undefined => of[below(of.length || 1)],
    chance: (percent: number) => below(100) < percent,
  };
}
export type Choices = ReturnType<typeof choicesOf>;
