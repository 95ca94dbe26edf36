import { expect, test } from 'vitest';
import { createOccupancy } from './occupancy.ts';

test('each key has separate places', () => {
  const { enter } = createOccupancy(2);
  expect([enter('a'), enter('a'), enter('a'), enter('b')]).toEqual([true, true, false, true]);
});

test('a released place can be taken again, and a refusal does not take a place', () => {
  const { enter, leave } = createOccupancy(1);
  enter('a');
  expect(enter('a')).toBe(false);
  leave('a');
  expect([enter('a'), enter('a')]).toEqual([true, false]);
});
