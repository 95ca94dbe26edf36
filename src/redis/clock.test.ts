import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Logger } from '../telemetry/log.ts';
import type { RedisClient } from './client.ts';
import { followRedisClock } from './clock.ts';

const START_MS = Date.parse('2026-01-02T03:04:05Z');
const HOUR_MS = 3_600_000;

beforeEach(() => vi.useFakeTimers({ now: START_MS, toFake: ['Date', 'performance', 'setInterval', 'clearInterval'] }));
afterEach(() => vi.useRealTimers());

/** A Redis whose clock starts with an offset of `aheadMs` and continues with the monotonic clock. */
async function follow() {
  const log = { warn: vi.fn<Logger['warn']>() };
  const begunMs = performance.now();
  const redis = { aheadMs: 0 };
  const timeOf = () => START_MS + redis.aheadMs + (performance.now() - begunMs);
  const callAll = async () => [[String(Math.floor(timeOf() / 1_000)), String((timeOf() % 1_000) * 1_000)]];
  const clock = await followRedisClock({ callAll } as unknown as RedisClient, log, 10_000);
  return { redis, timeOf, nowMs: clock.nowMs, logged: () => log.warn.mock.calls.splice(0) };
}

test.each([
  ['forward', HOUR_MS],
  ['back', -HOUR_MS],
])('setting the clock of this machine %s does not have any effect', async (_where, byMs) => {
  const { timeOf, nowMs } = await follow();
  vi.setSystemTime(Date.now() + byMs);
  expect(nowMs()).toBe(timeOf());
  await vi.advanceTimersByTimeAsync(25_000);
  expect(nowMs()).toBe(timeOf());
});

test('a large step back of the clock of Redis is followed, and a small one is waited for', async () => {
  const { redis, timeOf, nowMs } = await follow();
  const first = nowMs();
  redis.aheadMs = -HOUR_MS;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(nowMs()).toBe(timeOf());
  expect(nowMs()).toBeLessThan(first);

  await vi.advanceTimersByTimeAsync(9_900);
  redis.aheadMs -= 1_500;
  const before = nowMs();
  await vi.advanceTimersByTimeAsync(100);
  expect(timeOf()).toBeLessThan(before);
  expect(nowMs()).toBe(before);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(nowMs()).toBe(timeOf());
});

test.each([61, -61])('a difference of %i s between the two clocks is logged once a minute', async seconds => {
  const { logged } = await follow();
  vi.setSystemTime(Date.now() + Math.sign(seconds) * 59_000);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(logged()).toEqual([]);
  vi.setSystemTime(Date.now() + Math.sign(seconds) * 2_000);
  await vi.advanceTimersByTimeAsync(120_000);
  const line = [{ aheadSeconds: seconds }, 'the clock of this machine differs from the Redis clock'];
  expect(logged()).toEqual([line, line]);
});
