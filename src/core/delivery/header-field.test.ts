import { expect, test } from 'vitest';
import { HEADER_FIELD_MAX, readHeaderField } from './header-field.ts';

const read = (value: string | Buffer) => readHeaderField(Buffer.from(value).toString('base64'));
const REFUSED = { fault: 'header_value_refused' };

test.each([
  ['Bearer abc.def-_~', 'Bearer abc.def-_~'],
  ['a\tb c', 'a\tb c'],
  ['', ''],
  ['ends with a line break\n', 'ends with a line break'],
  ['as Windows writes it\r\n', 'as Windows writes it'],
  ['x'.repeat(HEADER_FIELD_MAX), 'x'.repeat(HEADER_FIELD_MAX)],
])('%j is a valid value', (text, value) => {
  expect(read(text)).toEqual({ value });
});

test.each([
  'a\nb',
  'a\n\n',
  'a\r\nx-injected: 1\r\n',
  'a\r',
  '\na',
  'a\0b',
  'a\x1bb',
  'a\x7fb',
  'größe',
  '\u20ac',
  '\u{1F600}',
  'a\u2028b',
  'x'.repeat(HEADER_FIELD_MAX + 1),
])('%j is not a valid value', text => {
  expect(read(text)).toEqual(REFUSED);
});

test('bytes that are not text are invalid, and a missing key is reported as missing', () => {
  expect(read(Buffer.from([0xff, 0xfe, 0x41]))).toEqual(REFUSED);
  expect(read(Buffer.from([0xe4]))).toEqual(REFUSED);
  expect(readHeaderField(undefined)).toEqual({ fault: 'key_missing' });
});
