/** Most parameters that a query may have. No call takes as many as ten. */
export const MOST_PARAMETERS = 64;

/**
 * Returns the parameters of a request target as they were sent, without empty ones; undefined where there are more than
 * `MOST_PARAMETERS`. Takes `;`, a second `?` and `#` for separators, too, because something on the way might.
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
