/** The maximum number of query parameters. No route has ten or more parameters. */
export const MOST_PARAMETERS = 64;

/**
 * Returns the non-empty encoded parameters of a request target. Returns undefined if there are more than
 * `MOST_PARAMETERS`. The target is also split at `;`, a second `?`, and `#`, in case a proxy does the same.
 */
export function queryPieces(target: string): string[] | undefined {
  const start = target.search(/[?#]/);
  if (start < 0) return [];
  const pieces: string[] = [];
  for (const [piece] of target.slice(start + 1).matchAll(/[^?&;#]+/g)) {
    if (pieces.length === MOST_PARAMETERS) return undefined;
    pieces.push(piece);
  }
  return pieces;
}
