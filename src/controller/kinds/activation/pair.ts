/** An integration and a group key: what Activations open. */
export interface Pair {
  readonly namespace: string;
  readonly integration: string;
  readonly groupKey: string;
}

/** Parses a key of `pairKey`. Names have no slash, but a group key may. */
export function parsePair(key: string): Pair {
  const first = key.indexOf('/');
  const second = key.indexOf('/', first + 1);
  return { namespace: key.slice(0, first), integration: key.slice(first + 1, second), groupKey: key.slice(second + 1) };
}
