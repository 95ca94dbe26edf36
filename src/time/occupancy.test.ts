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

test('a key is in use until all of its places are released', () => {
  const { enter, leave, isUsed } = createOccupancy();
  enter('a');
  enter('a');
  leave('a');
  expect([isUsed('a'), isUsed('b')]).toEqual([true, false]);
  leave('a');
  expect(isUsed('a')).toBe(false);
});
