/** An integration and a group key, which can be opened by Activations. */
export interface Pair {
  readonly namespace: string;
  readonly integration: string;
  readonly groupKey: string;
}

/** Parses a key returned by `pairKey`. Only group keys can contain a slash, but names can't. */
export function parsePair(key: string): Pair {
  const first = key.indexOf('/');
  const second = key.indexOf('/', first + 1);
  return { namespace: key.slice(0, first), integration: key.slice(first + 1, second), groupKey: key.slice(second + 1) };
}
