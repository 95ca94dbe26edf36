import { expect, test } from 'vitest';
import { median, quantile, ratios, spreadOf } from './statistics.ts';

test('quantiles are values that occurred', () => {
  const values = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect([0, 0.5, 0.99, 1].map(q => quantile(values, q))).toEqual([1, 50, 99, 100]);
  expect(quantile([], 0.5)).toBeNaN();
});

test('median and spread', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 2, 9])).toBe(3);
  expect(spreadOf([3, 1, 2])).toMatchObject({ median: 2, min: 1, max: 3 });
});

test('ratios are taken within a round', () => {
  expect(ratios([10, 30, 20], [5, 10, 20]).values).toEqual([2, 3, 1]);
});
