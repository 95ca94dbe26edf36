/** A combination of an integration and a group key, which can be opened by Activations. */
export interface Pair {
  readonly namespace: string;
  readonly integration: string;
  readonly groupKey: string;
}

/** Parses a key that was returned by `pairKey`. Names cannot contain a slash, but group keys can. */
export function parsePair(key: string): Pair {
  const first = key.indexOf('/');
  const second = key.indexOf('/', first + 1);
  return { namespace: key.slice(0, first), integration: key.slice(first + 1, second), groupKey: key.slice(second + 1) };
}
