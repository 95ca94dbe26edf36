import { expect, it } from 'vitest';
import { duration, durationBetween, parseDurationMs } from './durations.ts';

it.each([
  ['5s', 5_000],
  ['500ms', 500],
  ['30m', 1_800_000],
  ['1h30m', 5_400_000],
  ['168h', 604_800_000],
  ['1m1s1ms', 61_001],
  ['0s', 0],
  ['99999h99999h99999h99999h', 399_996 * 3_600_000],
])('reads %s as %i ms', (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms);
  expect(duration().safeParse(text).success).toBe(true);
});

it.each(['', '5', 's', '-5s', '1.5h', '1d', '5 s', '5S', '100000h', '1h1h1h1h1h', '5s\n'])('refuses %j', text => {
  expect(() => parseDurationMs(text)).toThrow(RangeError);
  expect(duration().safeParse(text).success).toBe(false);
});

it.each([
  ['59m', false],
  ['1h', true],
  ['720h', true],
  ['720h1ms', false],
  ['soon', false],
])('limits durations to between 1h and 720h: %s is %s', (text, inside) => {
  expect(durationBetween('1h', '720h').safeParse(text).success).toBe(inside);
});
