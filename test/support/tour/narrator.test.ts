import { expect, test } from 'vitest';
import { createNarrator, formatMs } from './narrator.ts';

test('prints the time of each line, and counts problems', () => {
  const lines: string[] = [];
  const narrator = createNarrator({ write: line => lines.push(line), nowMs: () => 12_340 });
  narrator.tell('it begins');
  narrator.observe('202', true, 'should be 202');
  narrator.observe('503', false, 'should be 202');
  expect(lines).toEqual(['[ 12.3 s] it begins', '[ 12.3 s] 202', '[ 12.3 s] 503', '[ 12.3 s] WRONG: should be 202']);
  expect(narrator.problems()).toEqual(['503; should be 202']);
});

test('prints times in ms, and then in seconds, which are never negative', () => {
  expect([-3, 12.4, 999.4, 1_250].map(formatMs)).toEqual(['0 ms', '12 ms', '999 ms', '1.25 s']);
});
