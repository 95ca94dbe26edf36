import { expect, test } from 'vitest';
import { isHeaderValue } from './header-value.ts';

test.each([
  ['plain text', true],
  ['', true],
  ['tab\tand caf\u00e9', true],
  ['a\r\nb: c', false],
  ['a\0', false],
  ['del\u007f', false],
  ['snow \u2603', false],
])('%j as a value: %s', (value, expected) => {
  expect(isHeaderValue(value)).toBe(expected);
});
