/**
 * Compares two resourceVersions. The result is negative if `a` is older than `b`. Returns undefined if one of the
 * versions is not a decimal number, because these can only be compared for equality. The order of numeric versions is
 * defined in KEP-5504.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!/^[0-9]+$/.test(a) || !/^[0-9]+$/.test(b)) return undefined;
  // The versions are compared as strings, because a 64-bit integer cannot be represented by a JavaScript number.
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** Returns true if `a` is older than `b`. Returns false if the order is not known. */
export function isOlder(a: string, b: string): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}
