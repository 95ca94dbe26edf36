/**
 * Compares two resourceVersions. The result is negative if `a` is older than `b`. If a version is not a decimal number,
 * we can only check if they are equal. If they are not, the result is undefined. See KEP-5504 for the order of numeric
 * versions.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!/^[0-9]+$/.test(a) || !/^[0-9]+$/.test(b)) return undefined;
  // Compare as strings because JavaScript numbers can't represent a 64-bit integer.
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** Returns true if `a` is older than `b`. Returns false if the order is not known. */
export function isOlder(a: string, b: string): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}
