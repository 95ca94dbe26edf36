import { describe, expect, test } from 'vitest';
import { createPartClock } from './part-clock.ts';

const PART_MS = 1_790_000_000_000;

describe('the clock of a part', () => {
  const start = () => {
    const time = { ms: 1_000 };
    return {
      time,
      clock: createPartClock(
        () => time.ms,
        () => 42,
      ),
    };
  };

  test('never dates a claim later than it was made', () => {
    const { clock } = start();
    clock.note(1_000, 1_900, PART_MS);
    expect(clock.monotonicAt(PART_MS)).toBe(1_000);
    clock.note(2_000, 2_010, PART_MS + 1_005);
    expect(clock.monotonicAt(PART_MS)).toBe(1_000);
    clock.note(3_000, 3_900, PART_MS + 1_900);
    expect(clock.monotonicAt(PART_MS)).toBe(1_100);
  });

  test('detects an old claim even if every answer is late', () => {
    const { clock } = start();
    clock.note(1_000, 2_500, PART_MS + 100);
    expect(2_500 - clock.monotonicAt(PART_MS + 100)).toBe(1_500);
  });

  test('has no estimate before the first answer, and after Redis may have changed', () => {
    const { clock } = start();
    expect(clock.monotonicAt(PART_MS)).toBe(Number.NEGATIVE_INFINITY);
    expect(clock.nowMs()).toBe(42);
    clock.note(1_000, 1_001, PART_MS);
    clock.reset();
    expect(clock.monotonicAt(PART_MS)).toBe(Number.NEGATIVE_INFINITY);
  });

  test.each([
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ])('follows a clock that is set %s', (_name, byMs) => {
    const { clock, time } = start();
    clock.note(1_000, 1_010, PART_MS);
    clock.note(2_000, 2_010, PART_MS + 1_000 + byMs);
    time.ms = 2_500;
    expect(clock.monotonicAt(PART_MS + 1_000 + byMs)).toBe(2_000);
    expect(clock.nowMs()).toBe(PART_MS + 1_500 + byMs);
  });
});
