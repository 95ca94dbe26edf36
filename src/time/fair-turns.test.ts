import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createFairTurns, type Leave } from './fair-turns.ts';

/** Turns whose event loop is controlled by the test. */
function start(settings: Partial<Parameters<typeof createFairTurns>[0]> = {}) {
  const clock = createManualClock();
  const planned: (() => void)[] = [];
  let waiting = 0;
  const turns = createFairTurns({
    places: 2,
    holdMs: 100,
    mostWaiting: 1_000,
    mostWaitMs: 5_000,
    clock,
    onWaiting: change => void (waiting += change),
    nextIteration: run => void planned.push(run),
    ...settings,
  });
  const started: string[] = [];
  const refused: string[] = [];
  /** Makes a call that ends immediately, unless `leaves` is specified. */
  function call(owner: string, leaves?: Leave[], options?: Parameters<typeof turns.take>[1]) {
    return turns.take(owner, options).then(turn => {
      if (typeof turn === 'string') return void refused.push(`${owner} ${turn}`);
      started.push(owner);
      if (leaves === undefined) turn();
      else leaves.push(turn);
    });
  }
  /** Runs iterations of the event loop. Returns the owners of the calls that have started since the last time. */
  async function iterate(count = 1) {
    for (let n = 0; n < count; n++) {
      for (const run of planned.splice(0)) run();
      await clock.advance(0);
    }
    return started.splice(0);
  }
  return { clock, call, iterate, refused, waiting: () => waiting };
}

test('each iteration starts a single call, and the first call starts immediately', async () => {
  const { call, iterate, waiting } = start();
  for (let n = 0; n < 4; n++) void call('evil');
  expect(waiting()).toBe(3);
  expect(await iterate()).toEqual(['evil', 'evil']);
  for (let n = 0; n < 2; n++) expect(await iterate()).toEqual(['evil']);
  expect(waiting()).toBe(0);
  expect(await iterate(2)).toEqual([]);
});

test('a call waits for at most one call of each other owner, regardless of the number of their calls', async () => {
  const { call, iterate } = start();
  for (let n = 0; n < 200; n++) for (const owner of ['evil', 'mean']) void call(owner);
  await iterate(20);
  void call('shop');
  void call('shop');
  expect(await iterate(6)).toEqual(expect.arrayContaining(['shop', 'shop']));
  const rest = await iterate(500);
  expect(rest.slice(0, 6)).toEqual(['mean', 'evil', 'mean', 'evil', 'mean', 'evil']);
});

test('an owner has a limited number of calls in progress, in their order, and others are not affected', async () => {
  const { call, iterate } = start();
  const leaves: Leave[] = [];
  for (let n = 0; n < 5; n++) void call('evil', leaves);
  void call('shop');
  expect(await iterate(10)).toEqual(['evil', 'evil', 'shop']);
  leaves[0]?.();
  leaves[0]?.();
  expect(await iterate(10)).toEqual(['evil']);
  for (const leave of leaves) leave();
  expect(await iterate(10)).toEqual(['evil', 'evil']);
});

test('a call that takes longer than expected releases its place', async () => {
  const { clock, call, iterate } = start();
  const leaves: Leave[] = [];
  for (let n = 0; n < 5; n++) void call('evil', leaves);
  expect(await iterate(10)).toEqual(['evil', 'evil']);
  await clock.advance(99);
  expect(await iterate(10)).toEqual([]);
  await clock.advance(1);
  expect(await iterate(10)).toEqual(['evil', 'evil']);
  for (const leave of leaves) leave();
  expect(await iterate(10)).toEqual(['evil']);
  for (const leave of leaves) leave();
  expect(clock.pendingTimers()).toBe(0);
});

test('calls beyond the limit, and calls that have waited for too long, are not started', async () => {
  const { clock, call, iterate, refused, waiting } = start({ places: 1, mostWaiting: 2, holdMs: 60_000 });
  const leaves: Leave[] = [];
  for (let n = 0; n < 4; n++) void call('evil', leaves);
  void call('evil', leaves, { isPatient: true });
  void call('shop');
  expect(await iterate(10)).toEqual(['evil', 'shop']);
  expect(refused.splice(0)).toEqual(['evil full']);
  await clock.advance(5_000);
  expect(refused).toEqual(['evil late', 'evil late']);
  expect(waiting()).toBe(1);
  leaves[0]?.();
  expect(await iterate(10)).toEqual(['evil']);
});

test('a call that is aborted while waiting is not started, and releases its place', async () => {
  const { clock, call, iterate, refused, waiting } = start({ places: 1 });
  const leaves: Leave[] = [];
  const gone = new AbortController();
  void call('evil', leaves);
  void call('evil', leaves, { signal: gone.signal });
  await iterate(0);
  gone.abort();
  void call('evil', leaves, { signal: gone.signal });
  expect(await iterate(10)).toEqual(['evil']);
  expect(refused).toEqual(['evil aborted', 'evil aborted']);
  expect(waiting()).toBe(0);
  leaves[0]?.();
  expect(clock.pendingTimers()).toBe(0);
  void call('evil');
  expect(await iterate()).toEqual(['evil']);
});
