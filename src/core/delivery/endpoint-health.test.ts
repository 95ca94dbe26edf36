import { describe, expect, test } from 'vitest';
import { isEnabledSince, parseEndpointHealth, warningOf } from './endpoint-health.ts';

const DAY_MS = 86_400_000;

describe('the stored health', () => {
  test.each([
    ['1000 3 0 0 -', { sinceMs: 1_000, failures: 3 }],
    ['1000 12 9000 5000 p1', { sinceMs: 1_000, failures: 12 }],
    ['1000 1 0 0 - 2000 gone', { sinceMs: 1_000, failures: 1, disabled: { ms: 2_000, by: 'gone' } }],
    ['1000 40 9000 5000 - 2000 failing', { sinceMs: 1_000, failures: 40, disabled: { ms: 2_000, by: 'failing' } }],
    [undefined, undefined],
    ['', undefined],
    ['1000 3', undefined],
    ['1000 3 0 0 - 2000', undefined],
    ['1000 3 0 0 - 2000 bored', undefined],
  ])('%j', (text, expected) => {
    expect(parseEndpointHealth(text)).toEqual(expected);
  });
});

test.each([
  ['no time is known', undefined, false],
  ['at the same time', 1_000, false],
  ['before', 999, false],
  ['after', 1_001, true],
  ['by a clock that is a little ahead', 5_000 + 59_000, true],
  ['at a time far ahead', 5_000 + 61_000, false],
])('enabled since: %s', (_what, enabledMs, expected) => {
  expect(isEnabledSince(1_000, enabledMs, 5_000)).toBe(expected);
});

test.each([
  [0, { days: undefined, nextMs: 7 + DAY_MS }],
  [DAY_MS - 1, { days: undefined, nextMs: 7 + DAY_MS }],
  [DAY_MS, { days: 1, nextMs: 7 + 3 * DAY_MS }],
  [3 * DAY_MS, { days: 3, nextMs: 7 + 4 * DAY_MS }],
  [4 * DAY_MS, { days: 4, nextMs: undefined }],
  [40 * DAY_MS, { days: 4, nextMs: undefined }],
])('after %i ms of failures', (passedMs, expected) => {
  expect(warningOf(7, 7 + passedMs)).toEqual(expected);
});
