/** Bytes that one token pays for (specification part 8: one token per started 16 KB, read as 16 KiB). */
export const TOKEN_BYTES = 16_384;

/** Tokens of one event by the size of its body in bytes; an empty body costs one. */
export function tokensOf(bytes: number): number {
  return Math.ceil(Math.max(1, bytes) / TOKEN_BYTES);
}
