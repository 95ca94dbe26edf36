import { expect, test } from 'vitest';
import { append, trimmed } from './collected-bytes.ts';

test.each([1, 2, 3, 7, 64, 1_000, 4_000])('chunks of %i bytes are combined within the limit', size => {
  const bytes = Buffer.from(Array.from({ length: 4_000 }, (_, i) => i % 251));
  let buffer: Buffer = Buffer.alloc(0);
  let used = 0;
  for (; used < bytes.length; used += Math.min(size, bytes.length - used)) {
    buffer = append(buffer, used, Buffer.from(bytes.subarray(used, used + size)), bytes.length);
    expect(buffer.length).toBeLessThanOrEqual(Math.min(bytes.length, Math.max(size, 2 * (used + size))));
  }
  expect(trimmed(buffer, used).equals(bytes)).toBe(true);
  expect(trimmed(buffer, 10)).toEqual(bytes.subarray(0, 10));
});
