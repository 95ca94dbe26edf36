import { expect, test } from 'vitest';
import { createHeaderSeals } from './header-seal.ts';
import { deriveSealKeys } from './seal.ts';

const seals = createHeaderSeals(deriveSealKeys(new Uint8Array(32).fill(7)));
const VALUE = 'Bearer do-not-show-me';

test('opens a value for the same subscription and header, in any case', () => {
  const sealed = seals.seal('sub_a', 'Authorization', VALUE);
  expect(sealed).not.toContain(VALUE);
  expect(seals.seal('sub_a', 'authorization', VALUE)).toBe(sealed);
  expect(seals.open('sub_a', 'AUTHORIZATION', sealed)).toBe(VALUE);
});

test('does not open a value that was copied, damaged, or sealed with another key', () => {
  const sealed = seals.seal('sub_a', 'authorization', VALUE);
  const other = createHeaderSeals(deriveSealKeys(new Uint8Array(32)));
  expect(seals.open('sub_b', 'authorization', sealed)).toBeUndefined();
  expect(seals.open('sub_a', 'x-token', sealed)).toBeUndefined();
  expect(other.open('sub_a', 'authorization', sealed)).toBeUndefined();
  expect(seals.open('sub_a', 'authorization', sealed.slice(0, -2))).toBeUndefined();
  expect(seals.open('sub_a', 'authorization', VALUE)).toBeUndefined();
});
