import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { hintPartition } from '../redis/keys.ts';
import { createLogger } from '../telemetry/log.ts';
import { createDueLoop, type DueLoopOptions } from './due-loop.ts';
import { createMemoryHints } from './testing/memory-hints.ts';

const LEASE_MS = 20_000;
const NOW = Date.parse('2026-01-01T00:00:00Z');

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});
afterEach(() => {
  vi.useRealTimers();
});

function start(run: DueLoopOptions['run'], options: Partial<DueLoopOptions> = {}) {
  const memory = createMemoryHints();
  const ran: string[] = [];
  let turn = 0;
  const loop = createDueLoop({
    hints: memory.hints,
    nowMs: () => Date.now(),
    log: createLogger({ level: 'silent' }),
    concurrency: 8,
    leaseMs: LEASE_MS,
    token: () => `t${turn++}`,
    run: member => {
      ran.push(member);
      return run(member);
    },
    ...options,
  });
  return {
    ...memory,
    loop,
    ran,
    lower: (member: string, dueMs = Date.now()) => memory.hints.lower([{ member, dueMs }]),
  };
}

const soon = () => vi.advanceTimersByTimeAsync(20);
const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test('runs work when it is due, and removes it if there is no next time', async () => {
  const { loop, ran, due, lower } = start(async () => null);
  loop.start();
  await soon();
  await lower('m');
  await lower('n', NOW + 5_000);
  await soon();
  expect(ran).toEqual(['m']);
  expect([...due.keys()]).toEqual(['n']);
  await later(5_000);
  expect(ran).toEqual(['m', 'n']);
  expect(due.size).toBe(0);
  await loop.stop();
});

test('runs again at the requested time, with millisecond precision', async () => {
  const { loop, ran, lower } = start(async () => (ran.length < 3 ? Date.now() + 1_500 : null));
  loop.start();
  await lower('m');
  await soon();
  expect(ran).toHaveLength(1);
  await later(1_400);
  expect(ran).toHaveLength(1);
  await later(100);
  expect(ran).toHaveLength(2);
  await later(10_000);
  expect(ran).toHaveLength(3);
  await loop.stop();
});

test('a lost message only causes a delay of one sweep; an idle loop reads each partition about every 2 s', async () => {
  const { loop, ran, due, calls } = start(async () => null);
  loop.start();
  await soon();
  due.set('m', NOW);
  await later(2_500);
  expect(ran).toEqual(['m']);
  calls.pick = 0;
  await later(20_000);
  expect(calls.pick).toBeGreaterThan(16 * 7);
  expect(calls.pick).toBeLessThan(16 * 14);
  await loop.stop();
});

describe('work that becomes due while it is running', () => {
  test('runs once more after the current run, and never concurrently', async () => {
    const ends: (() => void)[] = [];
    const poked: string[] = [];
    const { loop, ran, lower, due } = start(() => new Promise(resolve => ends.push(() => resolve(null))), {
      poke: member => poked.push(member),
    });
    loop.start();
    await lower('m');
    await soon();
    await lower('m');
    await soon();
    expect([ran, poked]).toEqual([['m'], ['m']]);
    ends.shift()?.();
    await soon();
    expect(ran).toEqual(['m', 'm']);
    ends.shift()?.();
    await soon();
    expect(due.size).toBe(0);
    await loop.stop();
  });

  test('is reported to its current run, and not picked again', async () => {
    const ends: (() => void)[] = [];
    const poked: string[] = [];
    const { loop, lower, calls, due } = start(() => new Promise(resolve => ends.push(() => resolve(null))), {
      poke: member => poked.push(member),
    });
    loop.start();
    await lower('m');
    await soon();
    const before = calls.pick;
    for (let times = 0; times < 5; times++) {
      await lower('m');
      await soon();
    }
    expect([poked.length, calls.pick]).toEqual([5, before]);
    // Another check finds work that the run did not detect anymore.
    ends.shift()?.();
    await soon();
    expect([ends.length, calls.pick]).toEqual([1, before + 1]);
    ends.shift()?.();
    await soon();
    expect(due.size).toBe(0);
    await loop.stop();
  });

  test('runs immediately, even if it became due between the end of the run and its settling', async () => {
    const { loop, ran, lower, gate, due } = start(async () => null);
    loop.start();
    await soon();
    const { promise, resolve } = Promise.withResolvers<void>();
    gate.settle = promise;
    await lower('m');
    await soon();
    expect(ran).toHaveLength(1);
    await lower('m');
    await soon();
    delete gate.settle;
    resolve();
    // This happens before the lease of 20 s expires.
    await soon();
    expect(ran).toHaveLength(2);
    expect(due.size).toBe(0);
    await loop.stop();
  });

  test('is not lost when the loop stops: other processes find it immediately', async () => {
    const ends: (() => void)[] = [];
    const { loop, lower, due } = start(() => new Promise(resolve => ends.push(() => resolve(null))));
    loop.start();
    await lower('m');
    await soon();
    await lower('m');
    await soon();
    const stopped = loop.stop();
    ends.shift()?.();
    await stopped;
    expect(due.get('m')).toBeLessThanOrEqual(Date.now());
  });
});

describe('failures', () => {
  test('retries a failed run after a delay', async () => {
    const { loop, ran, lower } = start(async () => {
      if (ran.length < 3) throw new Error('no');
      return null;
    });
    loop.start();
    await lower('m');
    await soon();
    expect(ran).toHaveLength(1);
    await later(450);
    expect(ran).toHaveLength(1);
    await later(100);
    expect(ran).toHaveLength(2);
    await later(600);
    expect(ran).toHaveLength(3);
    await loop.stop();
  });

  test('does not retry continuously if a failing run becomes due all the time', async () => {
    const { loop, ran, lower } = start(async () => {
      await lower('m');
      throw new Error('no');
    });
    loop.start();
    await lower('m');
    await later(5_000);
    expect(ran.length).toBeLessThan(30);
    expect(ran.length).toBeGreaterThan(5);
    const stopping = loop.stop();
    await later(1_000);
    await stopping;
  });

  test('polls four times a second for each partition while Redis is not available, and then continues', async () => {
    const { loop, ran, lower, gate, calls } = start(async () => null);
    gate.failing = true;
    loop.start();
    await lower('m');
    await later(10_000);
    expect(calls.pick).toBeLessThan(16 * 45);
    expect(ran).toEqual([]);
    gate.failing = false;
    await later(300);
    expect(ran).toEqual(['m']);
    await loop.stop();
  });

  test('finds a hint whose settling failed when its lease expires', async () => {
    const { loop, ran, lower, gate } = start(async () => {
      gate.failing = ran.length === 1;
      return null;
    });
    loop.start();
    await lower('m');
    await soon();
    gate.failing = false;
    await later(LEASE_MS + 2_500);
    expect(ran).toEqual(['m', 'm']);
    await loop.stop();
  });
});

describe('concurrency', () => {
  const members = Array.from({ length: 100 }, (_, i) => `m${i}`);

  test('never exceeds the limit across all partitions, and runs everything eventually', async () => {
    let most = 0;
    let now = 0;
    const { loop, ran, hints, calls } = start(async () => {
      most = Math.max(most, ++now);
      await new Promise(resolve => setTimeout(resolve, 10));
      now--;
      return null;
    });
    await hints.lower(members.map(member => ({ member, dueMs: NOW })));
    loop.start();
    await later(1_000);
    expect(most).toBe(8);
    expect(new Set(ran)).toEqual(new Set(members));
    expect(ran).toHaveLength(100);
    expect(calls.pick).toBeLessThan(400);
    await loop.stop();
  });

  test('does not request work if there is no free place', async () => {
    const { loop, calls, hints } = start(() => new Promise(() => {}));
    await hints.lower(members.map(member => ({ member, dueMs: NOW })));
    loop.start();
    await later(100);
    calls.pick = 0;
    await later(30_000);
    expect(calls.pick).toBe(0);
  });
});

describe('stopping', () => {
  test('waits for work in progress, and does not accept more', async () => {
    let end = () => {};
    const { loop, ran, lower } = start(() => new Promise(resolve => (end = () => resolve(null))));
    loop.start();
    await lower('m');
    await soon();
    let stopped = false;
    const stopping = loop.stop().then(() => (stopped = true));
    await lower('n');
    await later(5_000);
    expect([stopped, ran]).toEqual([false, ['m']]);
    end();
    await stopping;
    expect(ran).toEqual(['m']);
  });

  test('returns work that was picked in the meantime, and waits for this', async () => {
    const { loop, ran, lower, gate, due, tokens } = start(async () => null);
    const { promise, resolve } = Promise.withResolvers<void>();
    gate.pick = promise;
    await lower('m');
    loop.start();
    await soon();
    let stopped = false;
    const stopping = loop.stop().then(() => (stopped = true));
    await soon();
    expect(stopped).toBe(false);
    resolve();
    await stopping;
    expect(ran).toEqual([]);
    expect(due.get('m')).toBeLessThanOrEqual(Date.now());
    expect(tokens.size).toBe(0);
  });
});

test('finds work without a message by checking all partitions', async () => {
  const { loop, ran, due } = start(async () => null);
  loop.start();
  await soon();
  due.set('m', NOW);
  expect(hintPartition('m')).toBeLessThan(16);
  loop.lookEverywhere();
  await soon();
  expect(ran).toEqual(['m']);
  await loop.stop();
});
