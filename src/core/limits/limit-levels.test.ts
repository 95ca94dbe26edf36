import { expect, test } from 'vitest';
import { limitLevel } from './limit-levels.ts';

test.each([
  [89, 100, undefined, 'within'],
  [90, 100, undefined, 'near'],
  [99, 100, undefined, 'near'],
  [100, 100, undefined, 'reached'],
  [101, 100, 'near', 'reached'],
  [99, 100, 'reached', 'near'],
  [80, 100, 'near', 'near'],
  [79, 100, 'near', 'within'],
  [79, 100, 'reached', 'within'],
  [1, 1, undefined, 'reached'],
  [0, 1, 'reached', 'within'],
  [0, 0, undefined, 'within'],
  [5, 0, 'reached', 'within'],
  [5, undefined, 'reached', 'within'],
] as const)('%i of %s after %s is %s', (count, limit, before, level) => {
  expect(limitLevel(count, limit, before)).toBe(level);
});
