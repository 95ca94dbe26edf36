/** Largest rest of a body in bytes. Scripts that need no bodies read it as well. */
const MOST_REST = 256;
/** A rest must save at least this number of bytes. */
const LEAST_SAVED = 32;

/** Returns the bytes of header and terminator of a Redis string. */
function overheadOf(size: number): number {
  if (size < 256) return 4;
  return size < 65_536 ? 6 : 10;
}

/**
 * Returns the number of bytes of a body that P:body stores. The log stores the rest, where it takes up only its own
 * bytes.
 *
 * jemalloc has four sizes of memory for each power of two, e.g. 1,024, 1,280, 1,536 and 1,792 bytes. For example,
 * P:body would need 1,030 bytes for a body of 1,024 bytes, and jemalloc would waste 250 bytes. For this reason, the log
 * stores the last 6 bytes of such a body.
 */
export function bytesInHash(size: number): number {
  const needed = size + overheadOf(size);
  const step = 2 ** (29 - Math.clz32(needed - 1));
  const rest = ((needed - 1) % step) + 1;
  return rest <= MOST_REST && step - rest >= LEAST_SAVED ? size - rest : size;
}
