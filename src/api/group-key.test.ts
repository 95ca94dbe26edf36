import { expect, it } from 'vitest';
import { isGroupKey } from './group-key.ts';

it.each(['a', 'customer-42', 'a b', 'Łódź', '🦊'.repeat(64), 'x'.repeat(256), '"\\'])('%j may be one', value => {
  expect(isGroupKey(value)).toBe(true);
});

it.each([
  ['empty', ''],
  ['a space in front', ' a'],
  ['a space behind', 'a '],
  ['a no-break space behind', 'a\u00a0'],
  ['a space only', ' '],
  ['NUL', 'a\0b'],
  ['DEL', 'a\u007fb'],
  ['a line break at the end', 'a\n'],
  ['NEL', 'a\u0085b'],
  ['257 bytes in 257 characters', 'x'.repeat(257)],
  ['260 bytes in 65 characters', '🦊'.repeat(65)],
  ['half a surrogate pair', 'a\ud83eb'],
])('%s may not', (_, value) => {
  expect(isGroupKey(value)).toBe(false);
});
