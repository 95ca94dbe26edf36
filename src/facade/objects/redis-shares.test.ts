import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { Refusal } from '../../http/refusal.ts';
import { createRedisShares, useShareOf } from './redis-shares.ts';

const MASTER = 'redis-0:6379';
const SCRIPT = 'finish';

function start() {
  const clock = createManualClock();
  const refused = { count: 0 };
  const shares = createRedisShares(clock, () => refused.count++);
  const results: unknown[] = [];
  /** Makes a call with changes that runs `scripts` scripts. Each of them takes 1 ms. */
  function change({ signal = new AbortController().signal, closes = false, scripts = 1 } = {}): void {
    const run = async () => {
      for (let n = 0; n < scripts; n++) (await shares.changing(MASTER, SCRIPT))?.(1_000);
      return 'changed';
    };
    useShareOf({ account: 'evil', signal, closes }, run).then(
      result => results.push(result),
      (error: unknown) => results.push(error),
    );
  }
  const changed = () => results.filter(result => result === 'changed').length;
  const refusals = () => results.filter(result => result instanceof Refusal);
  return { clock, shares, change, changed, refusals, refused };
}

test('changes that would wait for more than five seconds are refused', async () => {
  const { clock, change, changed, refusals, refused } = start();
  for (let n = 0; n < 5_000; n++) change();
  await clock.advance(0);
  // With an expected duration of 1 ms and a share of 10 %, 100 calls are within the burst, and 500 within five seconds.
  expect([changed(), refusals().length, refused.count]).toEqual([101, 4_399, 4_399]);
  expect(refusals()[0]).toMatchObject({ code: 'rate_limited', facts: { headers: { 'retry-after': '6' } } });
  await clock.advance(5_000);
  expect(changed()).toBe(601);
  expect(clock.pendingTimers()).toBe(0);
});

test('a change is not refused after its first script', async () => {
  const { clock, shares, change, refusals } = start();
  const steps: string[] = [];
  const filled = Promise.withResolvers<void>();
  void useShareOf({ account: 'evil' }, async () => {
    await shares.changing(MASTER, SCRIPT);
    steps.push('begun');
    await filled.promise;
    await shares.changing(MASTER, SCRIPT);
    steps.push('done');
  });
  for (let n = 0; n < 1_000; n++) change();
  await clock.advance(0);
  expect([refusals().length, steps]).toEqual([400, ['begun']]);
  filled.resolve();
  await clock.advance(5_010);
  expect(steps).toEqual(['begun', 'done']);
});

test('a change whose caller has disconnected does not run, and leaves its time to others', async () => {
  const { clock, change, changed, refusals } = start();
  const gone = new AbortController();
  for (let n = 0; n < 101; n++) change();
  for (let n = 0; n < 500; n++) change({ signal: gone.signal });
  await clock.advance(0);
  expect(changed()).toBe(101);
  gone.abort();
  await clock.advance(0);
  expect([changed(), refusals().length, clock.pendingTimers()]).toEqual([101, 500, 0]);
  change();
  await clock.advance(10);
  expect(changed()).toBe(102);
});

test('a change that has started is completed, even if its caller has disconnected', async () => {
  const { clock, change, changed } = start();
  const gone = new AbortController();
  change({ signal: gone.signal, scripts: 150 });
  await clock.advance(100);
  gone.abort();
  await clock.advance(1_000);
  expect(changed()).toBe(1);
});

test('the completion of a change is not refused, even if its caller has disconnected', async () => {
  const { clock, shares, change, changed } = start();
  for (let n = 0; n < 601; n++) change();
  await clock.advance(0);
  let isCompleted = false;
  void useShareOf({ account: 'evil', signal: AbortSignal.abort() }, async () => {
    await shares.completing(MASTER, SCRIPT);
    isCompleted = true;
  });
  await clock.advance(5_100);
  expect([changed(), isCompleted]).toEqual([601, true]);
});

test('closing changes are never refused and never wait', async () => {
  const { clock, change, changed } = start();
  for (let n = 0; n < 601; n++) change();
  await clock.advance(0);
  change({ closes: true, scripts: 10 });
  await clock.advance(0);
  expect(changed()).toBe(102);
});

test('an account only starts a few reads in each turn of the event loop, at once or after waiting', async () => {
  const timers: (() => void)[] = [];
  const setTimer = (run: () => void) => {
    timers.push(run);
    return () => {};
  };
  const shares = createRedisShares({ nowMs: () => 0, setTimer }, () => {});
  let turn = 0;
  let hasEnded = false;
  const count = () => {
    turn++;
    if (!hasEnded) setImmediate(count);
  };
  setImmediate(count);
  const startedIn: Record<'evil' | 'good', number[]> = { evil: [], good: [] };
  const read = (account: 'evil' | 'good', reads: number) =>
    useShareOf({ account }, () =>
      Promise.all(
        Array.from({ length: reads }, async () => {
          const end = await shares.reading(MASTER, 'find-event');
          startedIn[account].push(turn);
          end?.(1_000);
        }),
      ),
    );
  const calls = [read('evil', 60), read('evil', 61), read('good', 3)];
  while (startedIn.evil.length < 101) await nextTurn();
  expect(startedIn.good).toEqual([0, 0, 0]);
  expect(startedIn.evil).toEqual(Array.from({ length: 101 }, (_, n) => Math.floor(n / 8)));

  // The event loop was busy, so that the waiting times of all other reads have ended.
  await nextTurn();
  const firstTurn = turn;
  for (const run of timers) run();
  await Promise.all(calls);
  hasEnded = true;
  expect(startedIn.evil.slice(101).map(each => each - firstTurn)).toEqual(
    Array.from({ length: 20 }, (_, n) => Math.floor(n / 8)),
  );
});
