import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { usedMemory } from '../../../test/support/used-memory.ts';
import { Refusal } from '../../http/refusal.ts';
import { MOST_VALUES, parseJsonBody, readBody } from './json-body.ts';

afterEach(() => vi.restoreAllMocks());

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
  ['a lone surrogate in capitals', '["\\uDC00"]'],
  ['two surrogates in the wrong order', '["\\udc00\\ud800"]'],
  ['a prototype', '{"__proto__":{"a":1}}'],
  ...['005f', '005F', '0070', '0072', '006f', '0074'].map(code => [
    `a prototype with \\u${code}`,
    `{"${'__proto__'.replace(String.fromCharCode(Number.parseInt(code, 16)), `\\u${code}`)}":1}`,
  ]),
  ['NaN', 'NaN'],
])('%s is malformed', (_what, text) => {
  expect(() => parseJsonBody(bytes(text))).toThrow(Refusal);
});

test('text that only looks suspect is taken', () => {
  expect(parseJsonBody(bytes('["\\\\u0000","\\ud83d\\ude00","\\u006fk"]'))).toEqual(['\\u0000', '😀', 'ok']);
  expect(() => parseJsonBody(bytes('{"a":"__proto__"}'))).not.toThrow();
});

test('a plain body of a MiB is parsed once, and no function sees its values', () => {
  const parse = vi.spyOn(JSON, 'parse');
  const body = { payloadSchema: JSON.stringify(Array.from({ length: 100_000 }, (_, n) => ({ n }))) };
  expect(parseJsonBody(Buffer.from(JSON.stringify(body)))).toEqual(body);
  expect(parse.mock.calls.map(args => args.length)).toEqual([1]);
});

test.each([
  ['items', `[${'0,'.repeat(500_000)}0]`],
  ['fields', `{${'"a":0,'.repeat(100_000)}"a":0}`],
  ['lists', '[],'.repeat(6_000)],
  ['lists in lists', '['.repeat(6_000)],
  ['objects', `[${'{},'.repeat(3_000)}{}]`],
])('more than 5,000 %s are refused before anything is parsed', (_what, text) => {
  const parse = vi.spyOn(JSON, 'parse');
  expect(() => parseJsonBody(bytes(text))).toThrow(expect.objectContaining({ code: 'body_too_large' }));
  expect(parse).not.toHaveBeenCalled();
});

test.each(['"', '\\"', '\\\\', '\\\\\\"', ',[{'])('ignores values in strings: %s', text => {
  const body = [text.repeat(6_000), text, `${text},`];
  expect(parseJsonBody(Buffer.from(JSON.stringify(body)))).toEqual(body);
  const full = [...body, ...Array<number>(MOST_VALUES - body.length - 1).fill(0)];
  expect(parseJsonBody(Buffer.from(JSON.stringify(full)))).toEqual(full);
  expect(() => parseJsonBody(Buffer.from(JSON.stringify([...full, 0])))).toThrow(Refusal);
});

test('a body that arrives byte by byte takes no more memory than its bytes', async () => {
  const most = 100_000;
  const payload = new PassThrough();
  const before = usedMemory();
  const reading = readBody(payload, undefined, most);
  for (let i = 0; i < most; i++) payload.emit('data', Buffer.alloc(1, '1'));
  expect(usedMemory() - before).toBeLessThan(10 * most);
  payload.emit('end');
  expect(String(await reading)).toBe('1'.repeat(most));
});
