import { expect, test } from 'vitest';
import { createElapsedClock } from './elapsed-clock.ts';

const WALL_MS = 1_790_000_000_000;
const HOUR_MS = 3_600_000;

function start() {
  const time = { monotonicMs: 1_000, wallMs: WALL_MS };
  const clock = createElapsedClock(
    () => time.monotonicMs,
    () => Math.floor(time.wallMs),
  );
  const pass = (ms: number, wallMs = ms) => {
    time.monotonicMs += ms;
    time.wallMs += wallMs;
    return clock.nowMs();
  };
  return { clock, pass };
}

test('counts the time during which the monotonic clock is stopped', () => {
  const { clock, pass } = start();
  expect(pass(500)).toBe(1_500);
  expect(pass(0, 5_000)).toBe(6_500);
  expect(pass(500)).toBe(7_000);
  expect(clock.suspendedMs()).toBe(5_000);
});

test('continues if the wall clock is set back, and counts a later suspension', () => {
  const { pass } = start();
  expect(pass(500, -HOUR_MS)).toBe(1_500);
  expect(pass(500)).toBe(2_000);
  expect(pass(0, 5_000)).toBe(7_000);
});

test('counts a wall clock that is set forward only once', () => {
  const { pass } = start();
  expect(pass(0, HOUR_MS)).toBe(1_000 + HOUR_MS);
  for (let i = 1; i <= 10; i++) expect(pass(100)).toBe(1_000 + HOUR_MS + 100 * i);
});

test('does not run faster because of the whole milliseconds of the wall clock', () => {
  const { clock, pass } = start();
  for (let i = 0; i < 10_000; i++) pass(0.1);
  expect(clock.nowMs()).toBeCloseTo(2_000, 3);
  expect(clock.suspendedMs()).toBe(0);
});
