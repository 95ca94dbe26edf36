import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { jsonOf } from './transport.ts';

test('reads JSON and YAML with the same result', () => {
  const text = Array.from({ length: 0x200 }, (_, code) => String.fromCharCode(code)).join('');
  const value = { text, lines: 'a\u2028b\u2029c\ufeffd', wide: '😀', '\u0085': '"\\' };
  expect(JSON.parse(jsonOf(value))).toEqual(value);
  expect(parse(jsonOf(value))).toEqual(value);
  expect(jsonOf('\u0085')).toBe('"\\u0085"');
  expect(jsonOf('\ufffe\uffff')).toBe('"\\ufffe\\uffff"');
});
