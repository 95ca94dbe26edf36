import { describe, expect, test } from 'vitest';
import { isHeaderValue, mayEndpointSet, mayForward, RESERVED_HEADERS } from './network-headers.ts';

describe('header names', () => {
  test.each([...RESERVED_HEADERS, 'Host', 'CONTENT-LENGTH', 'webhook-id', 'Webhook-X', 'ce-id', 'CE-anything'])(
    '%s is reserved',
    name => {
      expect(mayEndpointSet(name)).toBe(false);
      expect(mayForward(name)).toBe(false);
    },
  );

  test.each(['', 'a b', 'a:b', 'a\r\nb', 'ä', 'x\0'])('%j is no name', name => {
    expect(mayEndpointSet(name)).toBe(false);
  });

  test('an endpoint may set credentials of its own, the producer’s are not passed on', () => {
    for (const name of ['Authorization', 'x-api-key', 'cookie']) {
      expect(mayEndpointSet(name)).toBe(true);
      expect(mayForward(name)).toBe(false);
    }
    expect(mayForward('X-Request-Id')).toBe(true);
    expect(mayForward('tracestate')).toBe(true);
  });
});

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
