import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Settlement } from '../../part/tokens/tokens.ts';
import { createUpkeep } from './upkeep.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const PUSHED = { version: '1', events: [{}], behind: [] };
/** It says that any number of events was stored. */
const STORED = { version: '1', events: [], behind: [] };

/** Starts the upkeep of a part that was never used. `counts` are the seconds at which its counts were read. */
async function startUpkeep() {
  const found = { used: 0, bytes: 0, isLow: false };
  const counts: number[] = [];
  const startedMs = performance.now();
  const upkeep = createUpkeep(
    {
      sweep: async () => ({ answer: 'OK', more: false, dueInMs: undefined, events: 0, expired: 0, neverRouted: 0 }),
      tokens: {
        async settle(): Promise<Settlement> {
          counts.push(Math.round((performance.now() - startedMs) / 1_000));
          const { used, bytes, isLow } = found;
          const read = { payer: 'acc_a', counts: { traffic: ['', ''], bytes }, used, isLow } as const;
          return { answer: 'OK', cleared: false, waited: false, ...read };
        },
      },
      traffic: { fold: async () => '' },
      noteStored: async () => ({ text: '', atMs: 0 }),
      nowMs: Date.now,
      alarm: () => {},
    },
    { tenant: 'ten_a', queue: 'orders', gen: 'g', number: 0 },
  );
  upkeep.start();
  await vi.advanceTimersByTimeAsync(1);
  upkeep.wake(PUSHED);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(counts.splice(0)).toEqual([0, 5]);
  const secondsOf = (at: number) => at - 60;
  return {
    found,
    wake: upkeep.wake,
    stop: upkeep.stop,
    /** Calls `each` once a second. Returns when the counts were read, in seconds since the part has been used again. */
    run: async (seconds: number, each: (second: number) => void = () => {}) => {
      for (let second = 0; second < seconds; second++) {
        each(second);
        await vi.advanceTimersByTimeAsync(1_000);
      }
      return counts.splice(0).map(secondsOf);
    },
    counts: () => counts.splice(0).map(secondsOf),
  };
}

describe('the counts of a part', () => {
  test('are added every 5 s at first, and up to every 30 s while there are only a few', async () => {
    const { found, run, wake } = await startUpkeep();
    const events = await run(130, () => {
      wake(PUSHED);
      found.used += 1;
      found.bytes += 2_000;
    });
    expect(events).toEqual([5, 15, 35, 65, 95, 125]);
    // Events without a message may have been stored after the last one.
    expect(await run(100)).toEqual([155]);
    wake(PUSHED);
    expect(await run(60)).toEqual([235]);
  });

  test('are added with the counts before if these were few and not long ago', async () => {
    const { run, wake } = await startUpkeep();
    expect(await run(100, second => second % 10 === 0 && wake(PUSHED))).toEqual([5, 15, 35, 65, 95]);
  });

  test.each<[string, (part: Awaited<ReturnType<typeof startUpkeep>>) => void]>([
    ['messages', ({ wake }) => Array.from({ length: 20 }, () => wake(PUSHED))],
    ['tokens', ({ found }) => void (found.used += 20)],
    ['stored bytes', ({ found }) => void (found.bytes += 60_000)],
    ['removed bytes', ({ found }) => void (found.bytes -= 60_000)],
    ['events without claims', ({ wake }) => wake(STORED)],
    ['changes', ({ wake }) => wake({ ...PUSHED, version: String(performance.now()) })],
    ['uses of almost all tokens', ({ found }) => void (found.isLow = true)],
  ])('are added every 5 s with many %s', async (_what, use) => {
    const part = await startUpkeep();
    const counts = await part.run(26, () => {
      part.wake(PUSHED);
      use(part);
    });
    expect(counts).toEqual([5, 10, 15, 20, 25]);
  });

  test.each([
    ['many messages', PUSHED, 100],
    ['a message that any number of events was stored', STORED, 1],
    ['large events', { ...PUSHED, events: [{ size: 100_000 }] }, 3],
  ])('are added within 5 s after %s, even if there were only a few before', async (_what, seen, messages) => {
    const { run, wake } = await startUpkeep();
    const trickle = () => wake(PUSHED);
    expect(await run(40, trickle)).toEqual([5, 15, 35]);
    for (let i = 0; i < messages; i++) wake(seen);
    expect((await run(10, trickle))[0]).toBe(45);
  });

  test('are added when the part is left, unless they are recent', async () => {
    const { run, wake, stop, counts } = await startUpkeep();
    expect(await run(42, () => wake(PUSHED))).toEqual([5, 15, 35]);
    await stop();
    expect(counts()).toEqual([42]);

    const other = await startUpkeep();
    expect(await other.run(38, () => other.wake(PUSHED))).toEqual([5, 15, 35]);
    await other.stop();
    expect(other.counts()).toEqual([]);
  });
});
