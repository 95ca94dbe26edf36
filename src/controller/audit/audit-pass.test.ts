import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createAuditPass } from './audit-pass.ts';
import type { Difference } from './drift.ts';

const DIFFERENCE: Difference = { id: 'x', what: 'activation', removes: false };

/** Runs passes using a manual clock. Comparing a tenant takes `lookMs`. */
function start(options: {
  readonly tenants?: readonly string[];
  readonly damaged?: readonly string[];
  readonly lookMs?: number;
  readonly random?: number;
}) {
  const clock = createManualClock();
  const looks: [string, number][] = [];
  const mended: [string, number][] = [];
  const passes: number[] = [];
  const log: string[] = [];
  const warnings: object[] = [];
  const state = { sweeps: 0, failing: new Set<string>(), forgotten: 0, accounts: new Map<string, Difference[]>() };
  const wait = (ms: number): Promise<void> => new Promise(resolve => clock.setTimer(resolve, ms));
  const pass = createAuditPass({
    audit: {
      compareTenant: async name => {
        looks.push([name, clock.nowMs()]);
        if (state.failing.has(name)) throw new Error('unavailable');
        await wait(options.lookMs ?? 0);
        return options.damaged?.includes(name) === true ? [DIFFERENCE] : [];
      },
      compareAccounts: async () => state.accounts,
      repair: async suspects => {
        for (const name of [...suspects.tenants.keys(), ...suspects.accounts.keys()])
          mended.push([name, clock.nowMs()]);
      },
    },
    garbage: {
      forget: () => state.forgotten++,
      pass: async () => {
        state.sweeps++;
      },
    },
    readTenants: async () => new Set(),
    tenants: () => options.tenants ?? ['a', 'b'],
    accounts: () => ['acc'],
    onPass: () => log.push('pass'),
    metrics: { passed: seconds => passes.push(seconds) },
    clock,
    random: () => options.random ?? 0.5,
    log: { debug: () => {}, warn: (fields: object) => void warnings.push(fields) } as never,
  });
  const stop = new AbortController();
  pass.begin(stop.signal);
  return { clock, looks, mended, passes, log, warnings, state, pass, stop };
}

describe('passes', () => {
  test.each([
    [0, 38_400],
    [1, 57_600],
  ])('start at equal intervals, with jitter %d: %d ms', async (random, everyMs) => {
    const run = start({ tenants: ['a'], lookMs: 7_000, random });
    await run.clock.advance(everyMs * 3 + 8_000);
    expect(run.looks.map(([, ms]) => Math.round(ms))).toEqual([everyMs, 2 * everyMs, 3 * everyMs]);
    expect(run.passes).toEqual([7, 7, 7]);
    expect([run.state.sweeps, run.log.length, run.state.forgotten]).toEqual([3, 3, 1]);
  });

  test('check again after 2 s, but only what was found before', async () => {
    const run = start({ damaged: ['b'] });
    await run.clock.advance(48_000 + 1_999);
    expect(run.mended).toEqual([]);
    await run.clock.advance(1);
    expect(run.mended).toEqual([['b', 50_000]]);
    const calm = start({});
    await calm.clock.advance(60_000);
    expect(calm.mended).toEqual([]);
  });

  test('also repair during a long pass, 2 s after the damage was found', async () => {
    const run = start({ tenants: ['a', 'b', 'c', 'd'], damaged: ['a', 'c'], lookMs: 1_500 });
    await run.clock.advance(60_000);
    expect(run.mended).toEqual([
      ['a', 48_000 + 4_500],
      ['c', 48_000 + 8_000],
    ]);
  });

  test('include accounts', async () => {
    const run = start({});
    run.state.accounts.set('acc', [DIFFERENCE]);
    await run.clock.advance(50_000);
    expect(run.mended).toEqual([['acc', 50_000]]);
  });

  test('continue after a tenant that cannot be read', async () => {
    const run = start({ damaged: ['b'] });
    run.state.failing.add('a');
    await run.clock.advance(51_000);
    expect(run.mended).toEqual([['b', 50_000]]);
    expect(run.state.sweeps).toBe(1);
  });

  test('report a tenant that cannot be read in three passes, but not in each of them', async () => {
    const run = start({ tenants: ['a', 'b'] });
    run.state.failing.add('a');
    await run.clock.advance(2 * 50_000);
    expect(run.warnings).toEqual([]);
    await run.clock.advance(50_000);
    expect(run.warnings).toMatchObject([{ what: 'a', err: new Error('unavailable') }]);
    run.state.failing.delete('a');
    await run.clock.advance(50_000);
    run.state.failing.add('a');
    await run.clock.advance(100_000);
    expect(run.warnings).toHaveLength(1);
    await run.clock.advance(3_600_000);
    expect(run.warnings.length).toBeGreaterThan(10);
    expect(run.warnings.length).toBeLessThan(25);
  });

  test('stop at the end of the term', async () => {
    const run = start({ damaged: ['b'] });
    await run.clock.advance(49_000);
    run.stop.abort();
    await run.clock.advance(200_000);
    expect([run.looks.length, run.mended, run.state.sweeps]).toEqual([2, [], 0]);
    expect(run.clock.pendingTimers()).toBe(0);
  });
});
