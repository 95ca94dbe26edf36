import { expect, test } from 'vitest';
import { createLineLimit } from './line-limit.ts';

test('permits some lines in each period, and counts the lines in between', () => {
  let nowMs = 0;
  const takeLine = createLineLimit({ lines: 2, periodMs: 1_000, nowMs: () => nowMs });
  expect([takeLine(), takeLine(), takeLine(), takeLine()]).toEqual([0, 0, undefined, undefined]);
  nowMs += 999;
  expect(takeLine()).toBeUndefined();
  nowMs += 1;
  expect([takeLine(), takeLine(), takeLine()]).toEqual([3, 0, undefined]);
  nowMs += 60_000;
  expect(takeLine()).toBe(1);
});
