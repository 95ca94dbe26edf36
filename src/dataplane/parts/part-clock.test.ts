import { describe, expect, test } from 'vitest';
import { createPartClock } from './part-clock.ts';

const PART_MS = 1_790_000_000_000;

describe('the clock of a part', () => {
  const start = () => {
    const time = { ms: 1_000, suspendedMs: 0 };
    const elapsed = { nowMs: () => time.ms + time.suspendedMs, suspendedMs: () => time.suspendedMs };
    return { time, clock: createPartClock(elapsed, () => 42) };
  };

  test('never sets the time of a claim later than its creation', () => {
    const { clock } = start();
    clock.note(1_000, 1_900, PART_MS);
    expect(clock.elapsedAt(PART_MS)).toBe(1_000);
    clock.note(2_000, 2_010, PART_MS + 1_005);
    expect(clock.elapsedAt(PART_MS)).toBe(1_000);
    clock.note(3_000, 3_900, PART_MS + 1_900);
    expect(clock.elapsedAt(PART_MS)).toBe(1_100);
  });

  test('detects an old claim even if every response is late', () => {
    const { clock } = start();
    clock.note(1_000, 2_500, PART_MS + 100);
    expect(2_500 - clock.elapsedAt(PART_MS + 100)).toBe(1_500);
  });

  test('has no estimate before the first response, or after Redis may have changed', () => {
    const { clock } = start();
    expect(clock.elapsedAt(PART_MS)).toBe(Number.NEGATIVE_INFINITY);
    expect(clock.nowMs()).toBe(42);
    clock.note(1_000, 1_001, PART_MS);
    clock.reset();
    expect(clock.elapsedAt(PART_MS)).toBe(Number.NEGATIVE_INFINITY);
  });

  test.each([
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ])('follows a clock that is set %s', (_name, byMs) => {
    const { clock, time } = start();
    clock.note(1_000, 1_010, PART_MS);
    clock.note(2_000, 2_010, PART_MS + 1_000 + byMs);
    time.ms = 2_500;
    expect(clock.elapsedAt(PART_MS + 1_000 + byMs)).toBe(2_000);
    expect(clock.nowMs()).toBe(PART_MS + 1_500 + byMs);
  });

  test('adds a suspension to the age of a claim, and to the time after the next response', () => {
    const { clock, time } = start();
    clock.note(1_000, 1_000, PART_MS);
    time.suspendedMs = 5_000;
    expect(time.ms + time.suspendedMs - clock.elapsedAt(PART_MS)).toBe(5_000);
    expect(clock.nowMs()).toBe(PART_MS);
    clock.note(6_000, 6_010, PART_MS + 5_005);
    expect(clock.nowMs()).toBe(PART_MS + 5_000);
  });

  test('returns the correct time (and age of claims after the next response) if our wall clock was set forward', () => {
    const { clock, time } = start();
    clock.note(1_000, 1_000, PART_MS);
    time.suspendedMs = 3_600_000;
    time.ms = 1_500;
    expect(clock.nowMs()).toBe(PART_MS + 500);
    clock.note(3_601_500, 3_601_510, PART_MS + 505);
    expect(clock.nowMs()).toBe(PART_MS + 505);
    expect(clock.elapsedAt(PART_MS + 505)).toBe(3_601_500);
  });
});
