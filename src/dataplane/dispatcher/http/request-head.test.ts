import { expect, test } from 'vitest';
import { RESERVED_HEADERS } from '../../../api/header-names.ts';
import { headerLines, requestHead, requestStart } from './request-head.ts';

const START = requestStart(new URL('https://partner.test:8443/a b?c=ä#d'));

test('contains the host with its port, the path without its fragment, and the length', () => {
  expect(requestHead(START, headerLines(['x-a', 'b', 'X-C', 'd\xe4']) ?? '', 7)).toBe(
    'POST /a%20b?c=%C3%A4 HTTP/1.1\r\nhost: partner.test:8443\r\nconnection: keep-alive\r\nx-a: b\r\nX-C: d\xe4\r\ncontent-length: 7\r\n\r\n',
  );
});

test.each([
  ['a line break', 'x', 'a\r\nhost: other'],
  ['a lone LF', 'x', 'a\nb'],
  ['NUL', 'x', 'a\0b'],
  ['a character of two bytes', 'x', 'a\u0100'],
  ['no name', '', 'a'],
  ['a colon in the name', 'x:', 'a'],
  ['a line break in the name', 'x\r\ny', 'a'],
])('a header with %s is refused', (_what, name, value) => {
  expect(headerLines([name, value])).toBeUndefined();
});

test.each([0, 1, 2])(
  'a wrong value or name among several headers is refused, regardless of how often it is used (%i)',
  at => {
    const headers = ['x-a', 'b', 'x-c', 'd', 'x-e', 'f'];
    expect(headerLines(headers)).toBeDefined();
    expect(headerLines(headers.with(2 * at + 1, 'a\r\nb: c'))).toBeUndefined();
    for (let time = 0; time < 2; time++) expect(headerLines(headers.with(2 * at, 'x y'))).toBeUndefined();
  },
);

test('a header that specifies the end of a request is refused', () => {
  const framing = [
    'connection',
    'content-length',
    'expect',
    'host',
    'keep-alive',
    'te',
    'transfer-encoding',
    'upgrade',
  ];
  expect(RESERVED_HEADERS).toEqual(expect.arrayContaining(framing));
  for (const name of [...framing, 'Content-Length']) {
    expect([name, headerLines([name, '1'])]).toEqual([name, undefined]);
  }
});
