/** The maximum number of names to include in a message. */
const MOST_NAMED = 10;

/**
 * Returns a list of names such as `a, b and 3 more`. Names are sorted to keep the message from changing between
 * reconciles.
 */
export function nameSome(names: Iterable<string>): string {
  const sorted = [...names].toSorted();
  const more = sorted.length - MOST_NAMED;
  return sorted.slice(0, MOST_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
