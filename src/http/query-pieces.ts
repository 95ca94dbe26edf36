/** Maximum number of query parameters. No call needs ten. */
export const MOST_PARAMETERS = 64;

/**
 * Returns the parameters of a request target as sent, without empty ones; undefined above `MOST_PARAMETERS`. Also
 * splits at `;`, a second `?` and `#`, because a proxy might.
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
