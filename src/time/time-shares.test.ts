import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createTimeShares } from './time-shares.ts';

function start() {
  const clock = createManualClock();
  const shares = createTimeShares({ share: 0.1, burstMs: 1_000, clock });
  /** Makes sequential calls that take `ms` each. Returns the total time so far. */
  function work(owner: string, ms: number, kind = 'list') {
    const used = { ms: 0, calls: 0 };
    const run = async () => {
      for (;;) {
        const turn = await shares.take(owner, kind, Number.POSITIVE_INFINITY);
        used.ms += ms;
        used.calls++;
        if (typeof turn !== 'number') turn.end(ms);
        await new Promise(resolve => clock.setTimer(() => resolve(undefined), ms));
      }
    };
    void run();
    return used;
  }
  return { clock, shares, work };
}

test.each([1, 16])('an owner with %i workers only uses its share and a burst', async workers => {
  const { clock, work } = start();
  const used = Array.from({ length: workers }, () => work('evil', 5));
  await clock.advance(100_000);
  const all = used.reduce((sum, { ms }) => sum + ms, 0);
  expect(all).toBeGreaterThanOrEqual(0.1 * 100_000);
  expect(all).toBeLessThanOrEqual(0.1 * 100_000 + 0.1 * 1_000 + workers * 5);
});

test('others are not delayed, and neither is an owner within its share', async () => {
  const { clock, work } = start();
  work('evil', 5);
  const neighbour = work('shop', 1, 'get');
  await clock.advance(50);
  expect(neighbour.calls).toBe(51);
});

test('calls start in their order', async () => {
  const { clock, shares } = start();
  const started: number[] = [];
  for (let n = 0; n < 150; n++) {
    void shares.take('evil', 'list', Number.POSITIVE_INFINITY).then(() => started.push(n));
  }
  await clock.advance(0);
  // Each call is expected to take 1 ms, so the burst allows 100 calls.
  expect(started).toHaveLength(101);
  await clock.advance(1_000);
  expect(started).toEqual(Array.from({ length: 150 }, (_, n) => n));
});

test('a call that would wait for too long is refused, and does not use any time', async () => {
  const { clock, shares } = start();
  const turn = await shares.take('evil', 'list', 2_000);
  if (typeof turn === 'number') throw new Error('the call was refused');
  turn.end(500);
  expect(await shares.take('evil', 'list', 2_000)).toBe(4_000);
  expect(await shares.take('evil', 'list', 2_000)).toBe(4_000);
  expect(typeof (await shares.take('shop', 'list', 2_000))).toBe('object');
  await clock.advance(4_000);
  expect(typeof (await shares.take('evil', 'list', 0))).toBe('object');
});

test('a call of unknown duration counts as the expected duration', async () => {
  const { shares } = start();
  for (let n = 0; n < 201; n++) {
    const turn = await shares.take('evil', 'list', 0);
    if (typeof turn === 'number') return expect(n).toBe(101);
    turn.end(undefined);
  }
  expect.unreachable();
});

test('short calls do not hide long calls of the same kind', async () => {
  const { shares } = start();
  for (const ms of [50, 0, 0, 0]) {
    const turn = await shares.take('evil', 'list', 0);
    if (typeof turn !== 'number') turn.end(ms);
  }
  // 50 ms are used. Each additional call is expected to take 36 ms or less.
  const turns = await Promise.all(Array.from({ length: 10 }, () => shares.take('evil', 'list', 0)));
  expect(turns.filter(turn => typeof turn !== 'number')).toHaveLength(2);
});
