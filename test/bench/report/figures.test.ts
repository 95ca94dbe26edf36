import { expect, test } from 'vitest';
import type { PipeRun } from '../run.ts';
import { type Figure, judgeRuns, reaches } from './figures.ts';
import { formatFigures } from './format.ts';
import { spreadOf } from './statistics.ts';

function figure(values: number[], sign?: '>=' | '<='): Figure {
  const target = sign === undefined ? {} : { target: { sign, limit: 2 } };
  return { name: 'f', value: spreadOf(values), detail: '', ...target };
}

test('the median decides, in the direction of the target', () => {
  expect(reaches(figure([1, 2, 9], '>='))).toBe(true);
  expect(reaches(figure([1, 1.9, 9], '>='))).toBe(false);
  expect(reaches(figure([1, 1.9, 9], '<='))).toBe(true);
  expect(reaches(figure([2.1], '<='))).toBe(false);
  expect(reaches(figure([1]))).toBeUndefined();
});

test('a figure that was not measured is short of its target', () => {
  expect(reaches(figure([Number.NaN], '<='))).toBe(false);
  expect(formatFigures([figure([Number.NaN], '<=')])).toMatch(/n\/a .* short/);
});

test('correctness is summed over all runs', () => {
  const run = { expected: 10, missing: 1, duplicates: 2, outOfOrder: 3 } as PipeRun;
  expect(judgeRuns([run, run])).toEqual({ deliveries: 20, missing: 2, duplicates: 4, outOfOrder: 6 });
});
