import { describe, expect, test } from 'vitest';
import { parseHttpDate, parseRetryAfter, RETRY_AFTER_MAX_MS } from './retry-after.ts';

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0);

describe('parseRetryAfter', () => {
  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 120 ', 120_000],
    ['36000', RETRY_AFTER_MAX_MS],
    ['36001', RETRY_AFTER_MAX_MS],
    ['9'.repeat(400), RETRY_AFTER_MAX_MS],
    ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
    ['Saturday, 21-Nov-26 12:00:30 GMT', 30_000],
    ['Sat Nov 21 12:00:30 2026', 30_000],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
    ['Fri, 31 Dec 9999 23:59:59 GMT', RETRY_AFTER_MAX_MS],
  ])('%s', (value, expected) => {
    expect(parseRetryAfter(value, NOW)).toBe(expected);
  });

  test.each(
    [
      ['', ' ', '-1', '+1', '1.5', '1e3', '0x10', 'soon', '120, 120', 'NaN', 'Infinity', '2026-11-21T12:00:30Z'],
      ['Sat, 21 Nov 2026 12:00:30', 'Sat, 21 Nov 2026 12:00:30 CET', 'Sat, 31 Feb 2026 12:00:30 GMT'],
      ['Sat, 21 Foo 2026 12:00:30 GMT', 'Sat, 21 Nov 2026 24:00:30 GMT', 'Sat, 21 Nov 2026 12:61:30 GMT'],
    ].flat(),
  )('%s is ignored', value => {
    expect(parseRetryAfter(value, NOW)).toBeUndefined();
  });

  test('a missing header is ignored', () => {
    expect(parseRetryAfter(undefined, NOW)).toBeUndefined();
  });
});

describe('parseHttpDate', () => {
  test.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
    '%s, as in RFC 9110',
    value => {
      expect(parseHttpDate(value, NOW)).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
    },
  );

  test('a leap second is treated as the second before', () => {
    expect(parseHttpDate('Sat, 31 Dec 2016 23:59:60 GMT', NOW)).toBe(Date.UTC(2016, 11, 31, 23, 59, 59));
  });
});
