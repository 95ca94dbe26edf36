import { expect, test } from 'vitest';
import { parseDurationMs } from '../../api/durations.ts';
import { ENDPOINT_DEFAULTS } from '../../api/endpoint.ts';
import { jitterOf } from './jitter.ts';
import { compressDelay, planDelivery, simulatedStatus } from './simulation.ts';

const statuses = (attempts: readonly { status: number }[]) => attempts.map(({ status }) => status);

test.each([
  [{}, [200]],
  [{ failCount: 0 }, [200]],
  [{ failCount: 2 }, [500, 500, 200]],
  [{ failCode: 429, failCount: 1 }, [429, 200]],
  [{ failCode: 429, failCount: 0 }, [200]],
  [{ failCode: 302 }, [302, 302, 302, 302]],
  [{ failCount: 20 }, [500, 500, 500, 500]],
])('%j requires attempts with %j for a schedule of three retries', (simulation, expected) => {
  const plan = planDelivery(simulation, [1_000, 2_000, 4_000], () => 0.5);
  expect(statuses(plan.attempts)).toEqual(expected);
  expect(plan.outcome).toBe(expected.at(-1) === 200 ? 'delivered' : 'dead');
});

test('a plan contains the delays in production and in the run', () => {
  const schedule = ENDPOINT_DEFAULTS.retrySchedule.map(parseDurationMs);
  const { attempts } = planDelivery({ failCode: 503 }, schedule, () => 0.999);
  expect(attempts).toHaveLength(10);
  expect(attempts[0]).toEqual({ status: 503, delayMs: 0, jitteredDelayMs: 0, compressedDelayMs: 0 });
  expect(attempts[1]).toEqual({ status: 503, delayMs: 5_000, jitteredDelayMs: 5_999, compressedDelayMs: 1 });
  const total = attempts.reduce((sum, each) => sum + each.compressedDelayMs, 0);
  // 75 hours or more are simulated in less than ten seconds.
  expect([total > 7_500, total < 10_000]).toEqual([true, true]);
});

test('an hour is simulated as a tenth of a second, and an empty delay as none', () => {
  expect([3_600_000, 5_000, 1, 0].map(compressDelay)).toEqual([100, 1, 1, 0]);
});

test('fails the first attempts, or all of them if there is no count', () => {
  const of = (simulation: object) => Array.from({ length: 21 }, (_, i) => simulatedStatus(simulation, i + 1));
  expect(of({ failCount: 20 })).toEqual([...Array.from({ length: 20 }, () => 500), 200]);
  expect(new Set(of({ failCode: 599 }))).toEqual(new Set([599]));
});

test('the jitter is deterministic, and covers the whole range', () => {
  const shares = Array.from({ length: 1_000 }, (_, i) => jitterOf('run', i));
  expect(shares).toEqual(Array.from({ length: 1_000 }, (_, i) => jitterOf('run', i)));
  expect([Math.min(...shares) < 0.02, Math.max(...shares) > 0.98, Math.max(...shares) < 1]).toEqual([true, true, true]);
  expect(jitterOf('a', 'b')).not.toBe(jitterOf('ab'));
});
