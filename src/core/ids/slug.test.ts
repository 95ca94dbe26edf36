import fc from 'fast-check';
import { expect, test } from 'vitest';
import { slugOf } from './slug.ts';

test.each([
  ['Orders', 'orders'],
  ['  Órdenes   de compra! ', 'ordenes-de-compra'],
  ['ﬁnance', 'finance'],
  ['a--b', 'a-b'],
  ['İstanbul', 'istanbul'],
  [`${'x'.repeat(62)} y`, 'x'.repeat(62)],
  ['x'.repeat(80), 'x'.repeat(63)],
])('%j becomes %s', (name, slug) => {
  expect(slugOf(name, 's')).toBe(slug);
});

test('uses a prefix and a hash if no character of the name can be used', () => {
  expect(slugOf('注文', 's')).toMatch(/^s-[0-9a-f]{16}$/);
  expect(slugOf('注文', 'p')).toMatch(/^p-[0-9a-f]{16}$/);
  expect(slugOf('注文', 's')).not.toBe(slugOf('支払', 's'));
});

test('the key of any name is a DNS label and always the same', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }), name => {
      const slug = slugOf(name, 'p');
      expect(slug).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
      expect(slugOf(slug, 'p')).toBe(slug);
    }),
  );
});
