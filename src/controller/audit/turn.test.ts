import { expect, test } from 'vitest';
import { takeTurn } from './turn.ts';

test('every item gets a turn, and no turn has more items than allowed', () => {
  const items = ['a', 'b', 'c', 'd', 'e'];
  expect([0, 1, 2].map(turn => takeTurn(items, 2, turn).join(''))).toEqual(['ab', 'cd', 'ea']);
  expect(takeTurn(items, 5, 7)).toEqual(items);
  expect(takeTurn([], 2, 3)).toEqual([]);
});
