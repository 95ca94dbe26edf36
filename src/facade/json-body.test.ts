import { expect, test } from 'vitest';
import { parseJsonBody } from './json-body.ts';
import { Refusal } from './refusal.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');

test('JSON is read, nothing is nothing', () => {
  expect(parseJsonBody(Buffer.from('{"a":[1,"ä"]}'))).toEqual({ a: [1, 'ä'] });
  expect(parseJsonBody(Buffer.alloc(0))).toBeUndefined();
});

test.each([
  ['no JSON', '{'],
  ['a comment', '{}//'],
  ['two values', '{} {}'],
  ['invalid UTF-8', '"\xff"'],
  ['a byte order mark', '\xef\xbb\xbf{}'],
  ['a NUL', '"\\u0000"'],
  ['a NUL in a name', '{"a\\u0000":1}'],
  ['a lone surrogate', '["\\ud800"]'],
  ['a prototype', '{"__proto__":{"a":1}}'],
  ['NaN', 'NaN'],
])('%s is malformed', (_what, text) => {
  expect(() => parseJsonBody(bytes(text))).toThrow(Refusal);
});
