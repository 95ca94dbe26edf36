/**
 * Adds a chunk to a buffer of which `used` bytes are in use, and returns the buffer. If there is no room, this is a new
 * buffer with twice the size, but at most `most` bytes. Each byte can arrive as a chunk of its own. A list of such
 * chunks would need hundreds of times as much memory as the bytes.
 *
 * @param chunk the first one is used as it is, so it must not be part of a larger buffer
 */
export function append(buffer: Buffer, used: number, chunk: Buffer, most: number): Buffer {
  if (used === 0) return chunk;
  const length = used + chunk.length;
  const whole = length > buffer.length ? Buffer.allocUnsafe(Math.min(most, length * 2)) : buffer;
  if (whole !== buffer) buffer.copy(whole, 0, 0, used);
  chunk.copy(whole, used);
  return whole;
}

/** Returns the bytes in use. If the buffer is larger, they are copied. */
export function trimmed(buffer: Buffer, used: number): Buffer {
  return used === buffer.length ? buffer : Buffer.from(buffer.subarray(0, used));
}
