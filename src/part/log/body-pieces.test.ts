import { expect, test } from 'vitest';
import { bytesInHash } from './body-pieces.ts';

/** The sizes of memory that jemalloc allocates: four for each power of two. */
function allocated(bytes: number): number {
  for (let power = 8; ; power *= 2) {
    for (const size of [1.25, 1.5, 1.75, 2].map(factor => power * factor)) if (bytes <= size) return size;
  }
}

/** Returns the memory of a Redis string in bytes: its header, its characters, and NUL. */
const memoryOf = (size: number) => allocated(size + (size < 256 ? 4 : size < 65_536 ? 6 : 10));

test('the log stores the bytes of a body that would require the next size of memory', () => {
  expect(bytesInHash(1_024)).toBe(1_018);
  expect(memoryOf(1_018)).toBe(1_024);
  expect(bytesInHash(1_018)).toBe(1_018);
  expect(bytesInHash(20_574)).toBe(20_474);
});

test.each([0, 1, 200, 255, 256, 1_000, 1_150, 1_274, 1_400, 16_384, 65_535, 65_536, 200_000, 1_048_576])(
  'a body of %d bytes is only split if this saves memory, and only a small piece is split off',
  from => {
    for (let size = from; size < from + 600; size++) {
      const kept = bytesInHash(size);
      const rest = size - kept;
      expect(rest).toBeGreaterThanOrEqual(0);
      expect(rest).toBeLessThanOrEqual(256);
      if (rest > 0) expect(memoryOf(size) - memoryOf(kept) - rest).toBeGreaterThanOrEqual(32);
    }
  },
);
