import fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyText } from '../../test/support/any-text.ts';
import { faultOfGroupKey } from '../core/events/context-headers-limits.ts';
import { isGroupKey } from './group-key.ts';

it.each(['a', 'customer-42', 'a b', 'Łódź', '🦊'.repeat(64), 'x'.repeat(256), '"\\'])('accepts %j', value => {
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
])('refuses %s', (_, value) => {
  expect(isGroupKey(value)).toBe(false);
});

it('accepts the same keys as ingress, so that every published key can be activated', () => {
  const odd = fc.constantFrom(' ', '\u00a0', '\u3000', '\u2028', '\0', '\t', '\u0085', '\ud83e', 'é', '🦊');
  const part = fc.oneof(odd, anyText({ maxLength: 3 }), fc.constant('x'.repeat(252)));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 5 }), parts => {
      const value = parts.join('');
      expect(faultOfGroupKey(value) === undefined, JSON.stringify(value)).toBe(isGroupKey(value));
    }),
    { numRuns: 2_000 },
  );
});
