/** The maximum number of query parameters. All routes use fewer than ten. */
export const MOST_PARAMETERS = 64;

/**
 * Returns the encoded parameters of a request target without empty ones. Returns undefined if there are more than
 * `MOST_PARAMETERS`. We also split the query at `;`, a second `?` and `#` because a proxy might do the same.
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
