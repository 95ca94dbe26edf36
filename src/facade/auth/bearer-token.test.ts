import { expect, test } from 'vitest';
import { parseToken, readCredentials } from './bearer-token.ts';

test.each<[string[], object]>([
  [[], { kind: 'none' }],
  [['X', 'Authorization'], { kind: 'none' }],
  [['Authorization', ''], { kind: 'none' }],
  [['Authorization', 'Basic YTpi'], { kind: 'none' }],
  [['Host', 'x', 'aUTHORIZATION', 'bEARER a.b.c'], { kind: 'bearer', token: 'a.b.c' }],
  [['Authorization', 'Bearer'], { kind: 'bearer', token: '' }],
  [['Authorization', 'Bearer a b'], { kind: 'ambiguous' }],
  [['Authorization', 'Bearer a,b'], { kind: 'ambiguous' }],
  [['Authorization', 'Bearer a', 'authorization', 'Bearer a'], { kind: 'ambiguous' }],
  [['Authorization', 'Basic a', 'Authorization', 'Bearer a'], { kind: 'ambiguous' }],
])('the headers %j result in %j', (rawHeaders, credentials) => {
  expect(readCredentials(rawHeaders)).toEqual(credentials);
});

const part = (value: string | Uint8Array) => Buffer.from(value as string).toString('base64url');
const object = part('{"a":1}');

test('decodes the header and the claims', () => {
  expect(parseToken(`${object}.${part('{"b":"\u00e4"}')}.AA`)).toEqual({ header: { a: 1 }, claims: { b: '\u00e4' } });
});

test.each([
  '',
  '.',
  '..',
  object,
  `${object}.${object}`,
  `${object}.${object}.`,
  `${object}.${object}.AA.AA`,
  `${object}.${object}.AB`,
  `${object}.${object}.AA==`,
  `${object}.${object}.A A`,
  `${object}.${object}.A`,
  `${object}.${object}.+/==`,
  `${object}.${part('[]')}.AA`,
  `${object}.${part('null')}.AA`,
  `${part('1')}.${object}.AA`,
  `${object}.${part('{')}.AA`,
  `${object}.${part(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d))}.AA`,
  `${object}.${part('\ufeff{}')}.AA`,
])('%s is not a token', text => {
  expect(parseToken(text)).toBeUndefined();
});
