import { describe, expect, test } from 'vitest';
import { encodeAttribute } from './cloudevent-headers.ts';

describe('encodeAttribute', () => {
  test.each([
    ['plain-ASCII_!~', 'plain-ASCII_!~'],
    ['Euro \u20ac \u{1F600}', 'Euro%20%E2%82%AC%20%F0%9F%98%80'],
    ['"%', '%22%25'],
    ['\u0000\r\n\u007f', '%00%0D%0A%7F'],
    ['\ud800', '%EF%BF%BD'],
    ['', ''],
  ])('encodes %j as %s', (value, expected) => {
    expect(encodeAttribute(value)).toBe(expected);
  });
});
