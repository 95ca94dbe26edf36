/**
 * Returns up to `most` items. If there are more than that, each turn starts at another item, so that all of them get a
 * turn.
 */
export function takeTurn<T>(items: readonly T[], most: number, turn: number): T[] {
  if (items.length <= most) return [...items];
  const from = (turn * most) % items.length;
  return [...items.slice(from), ...items.slice(0, from)].slice(0, most);
}
