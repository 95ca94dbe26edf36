/**
 * Compares two resourceVersions: negative if `a` is older. Undefined if one is not a decimal number: such versions may
 * only be compared for equality (KEP-5504 made the order of numbers official).
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!/^[0-9]+$/.test(a) || !/^[0-9]+$/.test(b)) return undefined;
  // Compare numbers of any length: 64 bits do not fit a JavaScript number.
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** Returns whether `a` is known to be older than `b`. */
export function isOlder(a: string, b: string): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}
