import { expect, test } from 'vitest';
import { MOST_PARAMETERS, queryPieces } from './query-pieces.ts';

test.each([
  ['/x', []],
  ['/x?', []],
  ['/x?a=1&b', ['a=1', 'b']],
  ['/x?a;b?c#d', ['a', 'b', 'c', 'd']],
  ['/x#a', ['a']],
  ['/x?&&a&;&b&', ['a', 'b']],
])('%s has the parameters %j', (target, pieces) => {
  expect(queryPieces(target)).toEqual(pieces);
});

test('more parameters than a call may have are not listed, not counting empty parameters', () => {
  const full = Array.from({ length: MOST_PARAMETERS }, (_, n) => `p${n}`).join('&');
  expect(queryPieces(`/x?${full}${'&'.repeat(20_000)}`)).toHaveLength(MOST_PARAMETERS);
  expect(queryPieces(`/x?${full}&one`)).toBeUndefined();
});
