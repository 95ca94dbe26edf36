import { afterEach, expect, test, vi } from 'vitest';
import { startSpreadInterval } from './spread-interval.ts';

const EVERY_MS = 300_000;

afterEach(() => {
  vi.useRealTimers();
});

test('intervals that are started together are distributed, and none of them is too long', () => {
  vi.useFakeTimers({ now: 0 });
  let started = 0;
  const random = () => started++ / 200;
  const calls: number[][] = Array.from({ length: 200 }, () => []);
  const stops = calls.map(own => startSpreadInterval(() => own.push(Date.now()), EVERY_MS, random));
  vi.advanceTimersByTime(4 * EVERY_MS);
  const perSecond = new Map<number, number>();
  for (const own of calls) {
    expect(own.length).toBeGreaterThanOrEqual(4);
    for (const [i, atMs] of own.entries()) {
      expect(atMs - (own[i - 1] ?? 0)).toBeLessThanOrEqual(EVERY_MS);
      if (i > 0) expect(atMs - (own[i - 1] as number)).toBe(EVERY_MS);
      perSecond.set(Math.floor(atMs / 1_000), (perSecond.get(Math.floor(atMs / 1_000)) ?? 0) + 1);
    }
  }
  expect(Math.max(...perSecond.values())).toBeLessThan(10);
  for (const stop of stops) stop();
  expect(vi.getTimerCount()).toBe(0);
});

test('can be stopped before the first call', () => {
  vi.useFakeTimers();
  const run = vi.fn<() => void>();
  startSpreadInterval(run, EVERY_MS, () => 0)();
  vi.advanceTimersByTime(EVERY_MS);
  expect(run).not.toHaveBeenCalled();
});
