import { expect, test } from 'vitest';
import { searchRate } from './rate-search.ts';

function find(limit: number, start: number, mostProbes = 20): { held: number; probes: number } {
  const search = searchRate({ start, step: 1.5, tolerance: 1.05, mostProbes });
  let probes = 0;
  for (let rate = search.next(); rate !== undefined; rate = search.next(), probes++) search.record(rate <= limit);
  return { held: search.held(), probes };
}

test.each([
  [5_000, 500],
  [5_000, 5_000],
  [300, 4_000],
])('a limit of %d is found from %d to within a twentieth', (limit, start) => {
  const { held } = find(limit, start);
  expect(held).toBeLessThanOrEqual(limit);
  expect(held).toBeGreaterThan(limit / 1.06);
});

test('the number of probes is bounded', () => {
  expect(find(0, 1_000, 4)).toEqual({ held: 0, probes: 4 });
});
