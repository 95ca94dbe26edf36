import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from '../telemetry/log.ts';
import { createDueLoop } from './due-loop.ts';
import { createMemoryHints } from './testing/memory-hints.ts';

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse('2026-01-01T00:00:00Z') });
});
afterEach(() => {
  vi.useRealTimers();
});

test('finds work without a message as early as before if the clock is set back', async () => {
  const { hints, due, calls } = createMemoryHints();
  const ran: string[] = [];
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  const loop = createDueLoop({
    hints,
    nowMs,
    log: createLogger({ level: 'silent' }),
    concurrency: 8,
    leaseMs: 20_000,
    token: () => 't',
    run: async member => {
      ran.push(member);
      return null;
    },
  });
  loop.start();
  await vi.advanceTimersByTimeAsync(3_000);
  aheadMs = -3_600_000;
  due.set('m', nowMs());
  await vi.advanceTimersByTimeAsync(6_000);
  expect(ran).toEqual(['m']);
  calls.pick = 0;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(calls.pick).toBeGreaterThan(16 * 7);
  expect(calls.pick).toBeLessThan(16 * 14);
  await loop.stop();
});
