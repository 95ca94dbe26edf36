import { describe, expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { parseDurationMs } from '../../api/durations.ts';
import { ENDPOINT_DEFAULTS } from '../../api/endpoint.ts';
import type { RunEvent } from '../../api/sandbox.ts';
import type { Simulation } from '../../core/delivery/simulation.ts';
import { connectRedis } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSandbox, sealed } from './testing/sandbox.ts';

const SPECIAL = [undefined, 300, 301, 399, 400, 404, 408, 410, 429, 499, 500, 503, 599];
const CODES = [...SPECIAL, ...Array.from({ length: 15 }, (_, i) => 304 + 20 * i)];
const COUNTS = [undefined, ...Array.from({ length: 21 }, (_, i) => i)];
/** Runs have at most 1,000 events, so the combinations require two runs. */
const HALVES = [CODES.filter((_code, i) => i % 2 === 0), CODES.filter((_code, i) => i % 2 === 1)];

/** Returns the statuses of the attempts in order, as specified by the rulings. Does not use the code of the product. */
function ruled({ failCode, failCount }: Simulation, most: number): number[] {
  const code = failCode ?? 500;
  const asked = failCount ?? (failCode === undefined ? 0 : most);
  const failures = Array.from({ length: Math.min(asked, most) }, () => code);
  return asked >= most ? failures : [...failures, 200];
}

describe('a run', () => {
  test.each([
    ['the default schedule', ENDPOINT_DEFAULTS.retrySchedule.map(parseDurationMs)],
    ['no retries', []],
  ])(
    'with %s, every code and every count result in the expected attempts',
    async (_name, retryMs) => {
      const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
      const s = createSandbox(redis);
      await s.t.apply(s.t.routes({ x: { sub: { endpoint: sealed('x', retryMs), unordered: true } } }));
      await s.t.activate('x', 'a');
      const most = retryMs.length + 1;
      let compared = 0;
      for (const [half, codes] of HALVES.entries()) {
        const run = `half-${half}`;
        const asked = new Map<string, Simulation>();
        for (const failCode of codes) {
          for (const failCount of COUNTS) {
            const simulation = {
              ...(failCode === undefined ? {} : { failCode }),
              ...(failCount === undefined ? {} : { failCount }),
            };
            const id = `${failCode}-${failCount}`;
            asked.set(id, simulation);
          }
        }
        const stored = await Promise.all([...asked].map(([id, simulation]) => s.publish(run, 'a', simulation, id)));
        expect(new Set(stored.map(({ answer }) => answer))).toEqual(new Set(['OK']));
        await s.finish(run);
        let cursor: string | undefined;
        do {
          const page = await s.report(run, { limit: 250, cursor });
          for (const event of page?.data ?? []) {
            compare(event, asked.get(event.id) as Simulation, most);
            compared++;
          }
          cursor = page?.nextCursor ?? undefined;
        } while (cursor !== undefined);
      }
      expect(compared).toBe(CODES.length * COUNTS.length);
      await redis.close();
    },
    240_000,
  );
});

function compare(event: RunEvent, simulation: Simulation, most: number): void {
  const delivery = event.integrations[0]?.delivery;
  const wanted = ruled(simulation, most);
  const outcome = wanted.at(-1) === 200 ? 'delivered' : 'dead';
  expect({
    id: event.id,
    state: delivery?.state,
    expected: delivery?.expected?.outcome,
    expectedStatuses: delivery?.expected?.attempts.map(({ status }) => status),
    actualStatuses: delivery?.attempts.map(({ status }) => Number(status)),
    disables: delivery?.disablesEndpoint,
  }).toEqual({
    id: event.id,
    state: outcome,
    expected: outcome,
    expectedStatuses: wanted,
    actualStatuses: wanted,
    disables: wanted.includes(410),
  });
  for (const [i, planned] of (delivery?.expected?.attempts ?? []).entries()) {
    const jitter = planned.jitteredDelayMs - planned.delayMs;
    // Attempts are never early, and at most 20% late. The run waits at least for its share of the delay.
    expect(jitter >= 0 && jitter <= 0.2 * planned.delayMs).toBe(true);
    const late = (delivery?.attempts[i]?.waitedMs ?? -1) - planned.compressedDelayMs;
    expect({ id: event.id, i, late: late >= 0 && late <= 250 }).toEqual({ id: event.id, i, late: true });
  }
}
