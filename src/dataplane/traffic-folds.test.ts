import { expect, test, vi } from 'vitest';
import { createLogger } from '../telemetry/log.ts';
import { createTrafficFolds, FOLD_EVERY_MS } from './traffic-folds.ts';

const SOURCE = { integration: 'int_x' };

function start() {
  const clock = { ms: 1_000_000 };
  const calls: (string | undefined)[] = [];
  const world = { fails: false, text: 'first' };
  const folds = createTrafficFolds({
    store: {
      fold: async (_source, _nowMs, known) => {
        calls.push(known);
        if (world.fails) throw new Error('away');
        return world.text;
      },
    },
    nowMs: () => clock.ms,
    log: createLogger({ level: 'silent' }),
  });
  return { folds, clock, calls, world };
}

test('what a process has never seen is folded when work on it ends, whoever counted it', async () => {
  const { folds, calls } = start();
  expect(await folds.settle(SOURCE, null)).toBeNull();
  expect(calls).toEqual([undefined]);
});

test('soon after that it is put off, and due by then; what is known is told', async () => {
  const { folds, clock, calls } = start();
  await folds.settle(SOURCE, null);
  clock.ms += 1_000;
  const dueMs = clock.ms - 1_000 + FOLD_EVERY_MS;
  expect(await folds.settle(SOURCE, null)).toBe(dueMs);
  expect(await folds.settle(SOURCE, dueMs + 1)).toBe(dueMs);
  expect(await folds.settle(SOURCE, dueMs - 1)).toBe(dueMs - 1);
  expect(calls).toHaveLength(1);
  clock.ms = dueMs;
  expect(await folds.settle(SOURCE, null)).toBeNull();
  expect(calls).toEqual([undefined, 'first']);
});

test('while work goes on it is folded now and then, not at each touch', async () => {
  const { folds, clock, calls } = start();
  for (let i = 0; i < 101; i++) {
    folds.touch(SOURCE);
    clock.ms += FOLD_EVERY_MS / 10;
  }
  expect(calls).toHaveLength(10);
});

test('what could not be folded stays due', async () => {
  const { folds, clock, calls, world } = start();
  world.fails = true;
  expect(await folds.settle(SOURCE, null)).toBe(clock.ms + FOLD_EVERY_MS);
  world.fails = false;
  clock.ms += FOLD_EVERY_MS;
  expect(await folds.settle(SOURCE, null)).toBeNull();
  expect(calls).toEqual([undefined, undefined]);
});

test('one source does not put off another', async () => {
  const { folds } = start();
  await folds.settle(SOURCE, null);
  expect(await folds.settle({ tenant: 'ten_x', queue: 'orders' }, null)).toBeNull();
});

test('of many hints of one source a single one comes back to fold, also when its work ends once more before', async () => {
  const { folds, clock, calls } = start();
  const members = Array.from({ length: 50 }, (_, i) => `sub_${i}`);
  const settleAll = (ms: number) => Promise.all(members.map(member => folds.settle(SOURCE, ms, member)));
  await folds.settle(SOURCE, null, 'sub_first');
  const dueMs = clock.ms + FOLD_EVERY_MS;
  expect((await settleAll(dueMs + 1)).filter(ms => ms === dueMs)).toHaveLength(1);
  expect(await folds.settle(SOURCE, null, 'sub_0')).toBe(dueMs);
  expect(await folds.settle(SOURCE, null, 'sub_1')).toBeNull();
  clock.ms = dueMs;
  expect(await folds.settle(SOURCE, null, 'sub_0')).toBeNull();
  expect(calls).toHaveLength(2);
});

test('when two processes take up the hints that each other waits for, it is folded all the same', async () => {
  vi.useFakeTimers();
  try {
    const [one, other] = [start(), start()];
    await one.folds.settle(SOURCE, null, 'sub_a');
    await other.folds.settle(SOURCE, null, 'sub_b');
    expect(await one.folds.settle(SOURCE, null, 'sub_a')).not.toBeNull();
    expect(await other.folds.settle(SOURCE, null, 'sub_b')).not.toBeNull();
    expect(await other.folds.settle(SOURCE, null, 'sub_a')).toBeNull();
    expect(await one.folds.settle(SOURCE, null, 'sub_b')).toBeNull();
    for (const { clock } of [one, other]) clock.ms += 2 * FOLD_EVERY_MS;
    await vi.advanceTimersByTimeAsync(2 * FOLD_EVERY_MS);
    expect([one.calls.length, other.calls.length]).toEqual([2, 2]);
    // Once: what is counted later has a hint of its own.
    await vi.advanceTimersByTimeAsync(10 * FOLD_EVERY_MS);
    expect([one.calls.length, other.calls.length]).toEqual([2, 2]);
  } finally {
    vi.useRealTimers();
  }
});
